"""The translation units of TMX files, which are XML."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from xml.parsers import expat

from regard.components.data.read_problems import ReadProblems, UnreadableFile
from regard.components.data.sources import Corpus, FileGroup
from regard.components.data.tables import Cells
from regard.components.data.text_files import read_blocks

# Inline elements that hold codes of a document format instead of text.
_CODES = frozenset(("bpt", "ept", "it", "ph", "ut"))
_MAX_UNIT = 1 << 26  # bytes from the end of one unit to the end of the next
_MAX_KEYS = 10


class _UnitParser:
    """Collects units: the line, the texts by language and the properties by type, in lower case."""

    def __init__(self, path: str, encoding: str | None):
        self.units: list[tuple[int, dict[str, str]]] = []
        self._path = path
        self._parser = parser = expat.ParserCreate("utf-8" if encoding else None)
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._add_text
        # Declared entities may expand without limit or name files; others are not text.
        parser.EntityDeclHandler = parser.SkippedEntityHandler = lambda name, *_: self._fail(
            f"the entity {name!r} is not part of XML", "Replace entities by their characters."
        )
        self._line = self._bytes = self._unit_end = self._codes = 0
        self._values: dict[str, str] = {}
        self._key = ""
        self._texts: list[str] = []

    def _fail(self, message: str, remedy: str = "Export the file again.") -> None:
        raise UnreadableFile(self._path, message, remedy, self._parser.CurrentLineNumber)

    def feed(self, data: bytes) -> None:
        """Parse the next bytes; none at the end."""
        try:
            self._parser.Parse(data, not data)
        except expat.ExpatError as error:
            self._fail(f"not valid XML: {expat.ErrorString(error.code)}")
        self._bytes += len(data)
        if self._bytes - self._unit_end > _MAX_UNIT:
            self._fail(f"a translation unit is longer than {_MAX_UNIT >> 20} MiB")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "tu":
            self._line, self._values = self._parser.CurrentLineNumber, {}
        elif name in ("tuv", "prop"):
            key = "type" if name == "prop" else "xml:lang" if "xml:lang" in attributes else "lang"
            self._key = attributes.get(key, "").lower().replace("_", "-")
        if name in ("seg", "prop"):
            self._texts = []
        self._codes += name in _CODES

    def _add_text(self, text: str) -> None:
        if not self._codes:
            self._texts.append(text)

    def _end(self, name: str) -> None:
        self._codes -= name in _CODES
        if name in ("seg", "prop"):
            self._values.setdefault(self._key, "".join(self._texts).strip())
        elif name == "tu":
            self.units.append((self._line, self._values))
            self._unit_end = self._parser.CurrentByteIndex


def read_tmx(group: FileGroup, corpus: Corpus, problems: ReadProblems) -> Iterator[Cells]:
    """Yield the units of a file that have all languages; the line is that of the unit.

    A column names a language, ``en`` also for ``en-US``, or the type of a property.
    """
    (path,), config = group.files, corpus.config
    columns = [str((config.columns or {}).get(f.name, "")).lower() for f in corpus.features]
    required = {i for i, feature in enumerate(corpus.features) if not feature.optional}
    keys: set[str] = set()
    rows = skipped = 0
    parser = _UnitParser(path, config.encoding)
    for data in itertools.chain(read_blocks(path, recode=config.encoding), [b""]):
        parser.feed(data)
        for line, values in parser.units:
            cells = [_value_of(values, column) for column in columns]
            if any(cells[i] is None for i in required):
                skipped += 1
                keys.update(itertools.islice(values, _MAX_KEYS - len(keys)))
            else:
                rows += 1
                yield line, cells
        parser.units.clear()
    names = " and ".join(filter(None, columns))
    if not rows:
        message = f"no unit has {names}; there are {', '.join(sorted(keys)) or 'no units'}"
        raise UnreadableFile(path, message, "Check `data.columns`.")
    if skipped:
        note = f"{skipped:,} of {rows + skipped:,} units lack {names} and are left out"
        problems.formats.setdefault(note, []).append(path)


def _value_of(values: dict[str, str], column: str) -> str | None:
    if column in values or not column:
        return values.get(column)
    return next((text for key, text in values.items() if key.startswith(f"{column}-")), None)
