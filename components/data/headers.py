"""Whether the first row of a table holds the names of its columns."""

import re
from collections.abc import Sequence

from regard.components.data.column_names import (
    are_languages,
    common_features,
    is_abbreviation,
    is_column_name,
    is_common_word,
    language_of,
    normal_form,
)
from regard.components.data.sources import Corpus

# A missing number in a row, which no header contains.
_MISSING = re.compile(r"n/?a|nan|null|none|nil|missing|unknown|[-+]?inf(inity)?|[-–—?.*]+", re.I)


def clean_name(cell: str) -> str:
    """Return the name in a cell without spaces, quotes and a byte order mark around it."""
    return cell.strip("\ufeff \t\"'")


def is_header(cells: Sequence[str], corpus: Corpus) -> bool:
    """Return whether the first row of a table consists of the names of its columns."""
    config, columns = corpus.config, corpus.config.columns
    if isinstance(config.header, bool):
        return config.header
    if any(isinstance(column, str) for column in (columns or {}).values()):
        return True
    names = list(map(clean_name, cells))
    if len(names) > 1 and not names[0] and names[1:] == [str(i) for i in range(len(names) - 1)]:
        return True  # the numbers that pandas writes in place of names
    if not all(map(_can_be_name, names)) or _has_repeated_name(names, corpus):
        return False
    used: list[str] = []
    for position, feature in enumerate(corpus.features, 1):
        place = int(columns.get(feature.name, 0) if columns else position)
        cell = names[place - 1 : place]
        if feature.kind.is_number and any(cell):
            return _is_name_row(names) and not _MISSING.fullmatch(cell[0])
        used += cell
    return _has_known_names(names, used, corpus)


def _can_be_name(text: str) -> bool:
    """Return whether a cell looks like a name, or is a known one with signs: ``target [de]``.

    The name of row numbers that pandas writes, and those of empty columns of Excel, are empty.
    """
    is_plain = re.fullmatch(r"(\w[\w .()/:#-]{0,39})?", text) is not None
    return is_plain or bool(common_features(text))


def _has_repeated_name(names: Sequence[str], corpus: Corpus) -> bool:
    """Return whether a row of equal cells is no header: ``Text, Text`` is a text with its copy.

    Some headers have a name twice next to others: ``source, target, note, note``.
    """
    features = {normal_form(feature.name) for feature in corpus.features}
    important = [
        name.lower()
        for name in names
        if normal_form(name) in features or common_features(name) or language_of(name)
    ]
    if len(set(important)) > 1:
        return False
    if not important:
        important = [name.lower() for name in names if name]
    return len(set(important)) < len(important)


def _is_name_row(names: Sequence[str]) -> bool:
    """Return whether the cells of a row can be names: single words, or known ones; no numbers."""
    return not any(
        re.match(r"[-+.]?\d", name) or (" " in name and not is_column_name(name)) for name in names
    )


def _has_known_names(names: Sequence[str], used: Sequence[str], corpus: Corpus) -> bool:
    """Return whether names are known: those in use, most of all, or an abbreviation."""
    features = {normal_form(feature.name) for feature in corpus.features}
    known = {name for name in names if normal_form(name) in features or is_common_word(name)}
    is_name_row = _is_name_row(names)
    languages = {name for name in names if language_of(name)}
    if is_name_row and are_languages(languages):
        known |= languages
    if known.issuperset(used) or 2 * len(known) > sum(map(bool, names)):
        return True
    are_identifiers = all("_" in name for name in used)
    return is_name_row and (are_identifiers or any(map(is_abbreviation, names)))


def misplaced_name(corpus: Corpus, cells: Sequence[str]) -> str | None:
    """Return a cell of a first row that is the name of a feature in another column."""
    names = list(map(clean_name, cells))
    if corpus.config.header != "auto" or len(set(map(normal_form, names))) < len(names):
        return None
    if any(" " in name or not re.fullmatch(r"\w[\w-]*", name) for name in names):
        return None
    for name, feature in zip(names, corpus.features, strict=False):
        common = common_features(name)
        meant = [other.name for other in corpus.features if common.get(other.name) == 1]
        if meant and feature.name not in common:
            return repr(name)
    return None
