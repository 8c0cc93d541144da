"""The translation units of TMX files, which are XML."""

import itertools
from collections.abc import Iterator
from xml.parsers import expat

from regard.components.common.formatting import truncate
from regard.components.data.read_problems import ReadProblems, UnreadableFile
from regard.components.data.sources import Corpus, FileGroup
from regard.components.data.tables import Cells
from regard.components.data.text_files import read_blocks

# Inline elements that hold codes of a document format instead of text.
_CODES = frozenset(("bpt", "ept", "it", "ph", "ut"))
_MAX_UNIT = 1 << 24  # bytes from the end of one unit to the end of the next
_MAX_KEYS, _MAX_DEPTH = 10, 100


def read_tmx(group: FileGroup, corpus: Corpus, problems: ReadProblems) -> Iterator[Cells]:
    """Yield the units of a file that have all languages; the line is that of the unit.

    A column names a language, ``en`` also for ``en-US``, or the type of a property.
    """
    (path,), config = group.files, corpus.config
    columns = [str((config.columns or {}).get(f.name, "")).lower() for f in corpus.features]
    required = [
        column for column, f in zip(columns, corpus.features, strict=True) if not f.optional
    ]
    keys: set[str] = set()
    rows = skipped = 0
    for line, unit in _read_units(path, config.encoding):
        values = {column: _value_of(unit, column) for column in columns}
        if any(values[column] is None for column in required):
            skipped += 1
            keys.update(itertools.islice(unit, _MAX_KEYS - len(keys)))
        else:
            rows += 1
            yield line, [values[column] for column in columns]
    names = " and ".join(required)
    if not rows:
        languages = truncate(", ".join(sorted(keys))) or "no units"
        message = f"no unit has {names}; there are {languages}"
        raise UnreadableFile(path, message, "Check `data.columns`.")
    if skipped:
        note = f"{skipped:,} of {rows + skipped:,} units lack {names} and are left out"
        problems.formats.setdefault(note, path)


def _value_of(unit: dict[str, str], column: str) -> str | None:
    if column in unit or not column:
        return unit.get(column)
    return next((text for key, text in unit.items() if key.startswith(f"{column}-")), None)


def _read_units(path: str, encoding: str | None) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line of each unit, with its texts by language and its properties by type."""
    parser = expat.ParserCreate("utf-8" if encoding else None)
    parser.buffer_text = True
    units: list[tuple[int, dict[str, str]]] = []  # the last one is not complete
    texts: list[str] = []
    keys = [""]  # of the open elements
    codes = size = unit_end = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal codes
        codes += name in _CODES
        key = keys[-1]
        if name == "tu":
            units.append((parser.CurrentLineNumber, {}))
        elif name in ("tuv", "prop"):
            values = map(attributes.get, ("type", "xml:lang", "lang"))
            key = next(filter(None, values), "").lower().replace("_", "-")
        keys.append(key)
        if len(keys) > _MAX_DEPTH:
            raise ValueError("elements are nested too deeply")
        if name in ("seg", "prop"):
            texts.clear()

    def end(name: str) -> None:
        nonlocal codes, unit_end
        codes -= name in _CODES
        key = keys.pop()
        if name in ("seg", "prop") and units:
            units[-1][1].setdefault(key, "".join(texts).strip())
        if name == "tu":
            unit_end = parser.CurrentByteIndex

    def refuse(*_: object) -> None:
        raise ValueError("it declares or uses entities, which could expand without limit")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = lambda text: None if codes else texts.append(text)
    parser.EntityDeclHandler = parser.SkippedEntityHandler = refuse
    for data in itertools.chain(read_blocks(path, recode=encoding), [b""]):
        try:
            parser.Parse(data, not data)
            size += len(data)
            if size - unit_end > _MAX_UNIT:
                raise ValueError(f"a translation unit is longer than {_MAX_UNIT >> 20} MiB")
        except (expat.ExpatError, LookupError, ValueError) as error:
            line, remedy = parser.CurrentLineNumber, "Set `data.encoding`, or export it again."
            raise UnreadableFile(path, f"not TMX: {error}", remedy, line) from None
        complete = len(units) if not data else len(units) - 1
        yield from units[:complete]
        del units[:complete]
