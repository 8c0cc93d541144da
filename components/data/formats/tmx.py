"""The translation units of TMX files, which are XML."""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from xml.parsers import expat

import regex

from regard.components.data.column_names import language_of
from regard.components.data.file_kinds import kind_of_encoding
from regard.components.data.formats.base import Cells, DataFormat
from regard.components.data.read_problems import ReadProblems
from regard.components.data.sources import Corpus, FileGroup
from regard.components.data.text_files import read_blocks
from regard.components.data.unreadable_file import UnreadableFile
from regard.components.data.xml_characters import find_forbidden, mark_forbidden
from regard.core.features import Feature
from regard.core.formatting import format_count, truncate
from regard.models.settings.base import KeyPath, Problem
from regard.models.vocabulary import UNSPACED

# Inline elements that hold codes of a document format instead of text.
_CODES = frozenset(("bpt", "ept", "it", "ph", "ut"))
# Inline elements that format a text, also within a word. Others, such as an image, separate words.
_FORMATTING = frozenset(("bpt", "ept", "it", "hi", "sub"))
# Marks the place of an element that separates words; XML has no such character.
_SEPARATOR = "\0"
_LETTER = rf"[\w--[_{UNSPACED}]]"
_BETWEEN_WORDS = regex.compile(f"(?<={_LETTER}){_SEPARATOR}+(?={_LETTER})", regex.VERSION1)
_SPACES = re.compile("[ \t\r\n]+")
_MAX_UNIT = 1 << 24  # bytes from the end of one unit to the end of the next
_MAX_KEYS, _MAX_DEPTH, _MAX_ROWS = 10, 100, 100


class _RefusedError(ValueError):
    """A file has what is not read, though it may be XML."""


@dataclass
class _Unit:
    """A translation unit.

    Attributes:
        line: its line in the file.
        texts: its different texts by language.
        properties: the first value of each property by its type.
    """

    line: int
    texts: dict[str, list[str]] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)

    def add_text(self, language: str, text: str) -> None:
        """Add a text of a language, unless the unit has it."""
        texts = self.texts.setdefault(language, [])
        if text not in texts:
            texts.append(text)

    def values(self, column: str, is_language: bool) -> Sequence[str | None]:
        """Return the texts of a language, ``en`` also of ``en-US``; none if there are none.

        Args:
            column: the language, or the type of a property.
            is_language: whether a property of this type is not meant, such as ``id``.
        """
        if column in self.texts:
            return self.texts[column]
        start = f"{column}-"
        regional = [texts for key, texts in self.texts.items() if column and key.startswith(start)]
        if not (is_language or regional) and column in self.properties:
            return [self.properties[column]]
        return list(dict.fromkeys(itertools.chain.from_iterable(regional)))


class TmxFormat(DataFormat):
    """TMX files, which are XML."""

    name = "tmx"
    text = "TMX"
    endings = (".tmx",)
    keys = {
        "columns": "the language of each side, or the type of a property",
        "encoding": "null: the one that the file declares",
    }
    holds_text = True

    def problems(
        self, path: KeyPath, features: Sequence[Feature], columns: Mapping[str, int | str] | None
    ) -> Iterator[Problem]:
        if columns is None:
            message = "tmx files need the language of each side, such as {source: en, target: fr}"
            yield Problem(("data", "columns"), message)

    def read(self, group: FileGroup, corpus: Corpus, problems: ReadProblems) -> Iterator[Cells]:
        """Yield the units of a file that have all languages; the line is that of the unit.

        A column names a language, ``en`` also for ``en-US``, or the type of a property. If a unit
        has several texts of a language, each combination of its texts is a row.
        """
        (path,), config = group.files, corpus.config
        columns = [_key(str((config.columns or {}).get(f.name, ""))) for f in corpus.features]
        are_languages = [
            feature.tokenized and language_of(column) is not None
            for feature, column in zip(corpus.features, columns, strict=True)
        ]
        is_required = [not feature.optional for feature in corpus.features]
        required = list(itertools.compress(columns, is_required))
        keys: set[str] = set()
        units = skipped = with_variants = 0
        keeps_codes = config.protect is not None and config.protect.has_markup
        for unit in _read_units(path, config.encoding, keeps_codes):
            values = [unit.values(*pair) for pair in zip(columns, are_languages, strict=True)]
            if not all(values[i] for i, needed in enumerate(is_required) if needed):
                skipped += 1
                candidates = itertools.chain(unit.texts, unit.properties)
                keys.update(itertools.islice(candidates, _MAX_KEYS - len(keys)))
                continue
            units += 1
            with_variants += any(len(texts) > 1 for texts in values)
            yield from _rows(unit.line, values, path, problems)
        names = " and ".join(required)
        if not units:
            languages = truncate(", ".join(sorted(keys))) or "no units"
            message = f"no unit has {names}; there are {languages}"
            raise UnreadableFile(path, message, "Check `data.columns`.")
        if skipped:
            note = f"{skipped:,} of {units + skipped:,} units lack {names} and are left out"
            problems.formats.setdefault(note, path)
        if with_variants:
            count = format_count(with_variants, "unit")
            note = f"{count} with several texts of a language; each combination is a row"
            problems.formats.setdefault(note, path)


def _rows(
    line: int, values: Sequence[Sequence[str | None]], path: str, problems: ReadProblems
) -> Iterator[Cells]:
    """Yield a row for each combination of the texts of a unit."""
    count = math.prod(len(texts) or 1 for texts in values)
    texts_of_row = itertools.chain.from_iterable(values)
    problem = next(filter(None, (find_forbidden(text or "") for text in texts_of_row)), None)
    if count > _MAX_ROWS:
        problem = f"the unit has {count:,} combinations of texts; at most {_MAX_ROWS} are read"
    if problem:
        problems.add(path, line, problem)
        yield line, None
        return
    for cells in itertools.product(*(texts or [None] for texts in values)):
        yield line, cells


def _key(name: str) -> str:
    """Return the form in which names of languages and properties are compared."""
    return name.lower().replace("_", "-")


def _clean(text: str) -> str:
    """Return a text on one line, with a space in place of an element between words."""
    if _SEPARATOR in text:
        text = _BETWEEN_WORDS.sub(" ", text).replace(_SEPARATOR, "")
    # Several spaces stay, line breaks and indentation do not.
    return _SPACES.sub(lambda run: run[0] if set(run[0]) == {" "} else " ", text).strip()


def _utf_16_or_32(path: str) -> str | None:
    """Return the encoding of a file in UTF-16 or UTF-32; None for one that extends ASCII."""
    head = next(read_blocks(path), b"")
    if kind := kind_of_encoding(head):
        return kind.name.removesuffix(" text").lower()
    return {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}.get(head[:2])


def _empty_code(name: str, attributes: Mapping[str, str]) -> str:
    """Return the tag of XLIFF that stands for a code without content."""
    if name == "ept":
        return "</g>"
    number = attributes.get("i") or attributes.get("x") or "0"
    number = number if number.isalnum() else "0"
    return f'<g id="{number}">' if name == "bpt" else f'<x id="{number}"/>'


def _read_units(path: str, encoding: str | None, keeps_codes: bool = False) -> Iterator[_Unit]:
    """Yield each unit of a file; its texts are without inline codes, or contain them."""
    encoding = encoding or _utf_16_or_32(path)
    parser = expat.ParserCreate("utf-8" if encoding else None)
    parser.buffer_text = True
    units: list[_Unit] = []  # the last one is not complete
    texts: list[str] = []
    keys = [""]  # of the open elements
    codes = size = unit_end = 0
    open_codes: list[tuple[int, dict[str, str]]] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal codes
        codes += name in _CODES and not keeps_codes
        key = keys[-1]
        if name == "tu":
            units.append(_Unit(parser.CurrentLineNumber))
        elif name == "tuv":
            key = _key(attributes.get("xml:lang") or attributes.get("lang", ""))
        elif name == "prop":
            key = _key(attributes.get("type", ""))
        keys.append(key)
        if len(keys) > _MAX_DEPTH:
            raise _RefusedError("elements are nested too deeply")
        if name in ("seg", "prop"):
            texts.clear()
        elif name not in _FORMATTING:
            texts.append(_SEPARATOR)
        if name in _CODES and keeps_codes:
            open_codes.append((len(texts), attributes))

    def end(name: str) -> None:
        nonlocal codes, unit_end
        codes -= name in _CODES and not keeps_codes
        if name in _CODES and keeps_codes:
            count, attributes = open_codes.pop()
            if count == len(texts):
                texts.append(_empty_code(name, attributes))
        key = keys.pop()
        if name == "seg" and units:
            units[-1].add_text(key, _clean("".join(texts)))
        elif name == "prop" and units:
            units[-1].properties.setdefault(key, _clean("".join(texts)))
        if name == "tu":
            unit_end = parser.CurrentByteIndex

    def refuse(*_: object) -> None:
        raise _RefusedError("it declares or uses entities, which could expand without limit")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = lambda text: None if codes else texts.append(text)
    parser.EntityDeclHandler = parser.SkippedEntityHandler = refuse
    for data in itertools.chain(mark_forbidden(read_blocks(path, recode=encoding)), [b""]):
        try:
            parser.Parse(data, not data)
            size += len(data)
            if size - unit_end > _MAX_UNIT:
                raise _RefusedError(f"a translation unit is longer than {_MAX_UNIT >> 20} MiB")
        except (expat.ExpatError, LookupError, ValueError) as error:
            remedy = "Correct this line, or export the file again."
            if not isinstance(error, _RefusedError):
                remedy += " If the encoding is not the one that it declares, set `data.encoding`."
            line = parser.CurrentLineNumber
            raise UnreadableFile(path, f"not TMX: {error}", remedy, line) from None
        complete = len(units) if not data else len(units) - 1
        yield from units[:complete]
        del units[:complete]


FORMAT = TmxFormat()
