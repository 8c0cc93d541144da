"""The columns of a file that hold the features of a row, and its header row."""

import functools
import re
from collections.abc import Sequence

from regard.components.common.formatting import truncate
from regard.components.data.read_problems import UnreadableFile
from regard.components.data.sources import Corpus
from regard.models.suggestions import suggest
from regard.models.tasks.description import Feature

# Words in the names of columns of common data sets: numbers, other values, and texts.
_NUMBER = re.compile("gold|label|rating|relatedness|score|similarity")
_ID = re.compile("category|date|genre|hash|id|idx|index|key|lang|split|url|uuid")
_WORD = re.compile(
    f"{_NUMBER.pattern}|{_ID.pattern}|abstract|answer|article|caption|context|document|domain|file|"
    "filename|first|headline|highlights|hypothesis|image|input|output|pair|points|premise|query|"
    "question|reference|response|second|segment|sent|sentence|source|src|summary|target|text|tgt|"
    "title|translation"
)
_MAX_CHOICES = 100


def _words(name: str) -> list[str]:
    return re.sub(r"[\W\d_]+", " ", name).lower().split()


@functools.cache
def _languages() -> tuple[frozenset[str], frozenset[str]]:
    """Return the codes and the English names of languages."""
    from babel import Locale

    names = Locale("en").languages
    return frozenset(names), frozenset(name.lower() for name in names.values())


def is_column_name(text: str) -> bool:
    """Return whether a text is a common name of a column, or a language such as ``en-US``."""
    codes, languages = _languages()
    if re.fullmatch(r"[a-z]{2}([-_][a-z]{2,4})?", text.lower()):
        return text[:2].lower() in codes
    words = [word for word in _words(text) if len(word) > 1]
    return bool(words) and all(_WORD.fullmatch(word) or word in languages for word in words)


def is_header(cells: Sequence[str], corpus: Corpus) -> bool:
    """Return whether the first row of a table consists of the names of its columns."""
    config, columns = corpus.config, corpus.config.columns
    if isinstance(config.header, bool):
        return config.header
    if any(isinstance(column, str) for column in (columns or {}).values()):
        return True
    names = [cell.strip().lower() for cell in cells]
    # One name may be empty: that of the row numbers that pandas writes.
    are_names = all(re.fullmatch(r"(\w[\w .()/:#-]{0,39})?", name) for name in names)
    if not are_names or len({*names}) < len(names):
        return False
    used: list[str] = []
    for position, feature in enumerate(corpus.features, 1):
        place = int(columns.get(feature.name, 0) if columns else position)
        cell = names[place - 1 : place]
        if feature.kind == "number" and any(cell):
            return not re.match(r"\d|nan|inf", cell[0])
        used += cell
    own = {feature.name for feature in corpus.features}
    known = {name for name in names if name in own or is_column_name(name)}
    return known.issuperset(used) or 2 * len(known) > len(names)


def column_indices(
    corpus: Corpus, path: str, names: Sequence[str], line: int | None = None, header: bool = True
) -> list[int | None]:
    """Return the index of the column of each feature; None for an optional feature without one.

    Args:
        corpus: its features and the section ``data``.
        path: the file, for errors.
        names: the names of all columns.
        line: the line of the first row of a table; None for other files.
        header: whether the file contains the names; otherwise features are in order.

    Raises:
        UnreadableFile: a column is missing.
    """
    columns, features = corpus.config.columns, corpus.features
    required = {feature.name for feature in features if not feature.optional}
    # A header with other names, and a column for each feature.
    is_ordered = len(required) <= len(names) <= len(features) and required.isdisjoint(names)
    by_position = not header or (line is not None and is_ordered)
    indices: list[int | None] = []
    for position, feature in enumerate(features, 1):
        column: int | str | None = position if by_position else feature.name
        if columns is not None:
            column = columns.get(feature.name)
        if column in names:
            indices.append(names.index(str(column)))
        elif isinstance(column, int) and column <= len(names):
            indices.append(column - 1)
        elif column is None or (columns is None and feature.optional):
            indices.append(None)
        else:
            text = "there is" if line is None else "the first row has"
            text += f" no column {column!r} for {feature.name}"
            remedy = columns_remedy(corpus, names, str(column))
            if line is not None and len(names) == 1:
                remedy = "Tabs separate the columns of tsv files. If another character does, set "
                remedy += "`data.format: csv`, and if necessary `data.delimiter`."
            raise UnreadableFile(path, text, remedy, line)
    return indices


def columns_remedy(corpus: Corpus, names: Sequence[str], missing: str) -> str:
    """Return how to set ``data.columns``, guessed from the names of a file's columns or keys."""
    own = {feature.name for feature in corpus.features}
    rest = [name for name in names if name not in own][:_MAX_CHOICES]
    columns = {}
    for feature in corpus.features:
        if feature.optional and feature.name not in names:
            continue
        rest.sort(key=functools.partial(_rank, feature))
        name = feature.name if feature.name in names else (rest or [""]).pop(0)
        columns[feature.name] = name if re.fullmatch(r"[\w. -]*", name) else repr(truncate(name))
    if corpus.config.columns is not None or not all(columns.values()):
        return f"{suggest(missing, names)}. Check `data.columns`."
    return f"Set `data.columns: {{{', '.join(map(': '.join, columns.items()))}}}`."


def _rank(feature: Feature, name: str) -> tuple[bool, bool, bool]:
    """Sort names that probably hold a feature first; the order of a file decides among equals."""
    last = name.rpartition(".")[2]
    words = _words(last)
    is_number, is_id = (any(map(one.fullmatch, words)) for one in (_NUMBER, _ID))
    return is_number != (feature.kind == "number"), is_id, not is_column_name(last)
