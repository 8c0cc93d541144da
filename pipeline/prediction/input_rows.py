"""Parse model inputs from command-line arguments and from lines of standard input."""

import dataclasses
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from regard.components.data.cell_values import CellParser
from regard.components.data.columns import column_indices
from regard.components.data.headers import clean_name, is_header
from regard.components.data.images import Images
from regard.components.data.sources import Corpus
from regard.components.data.unreadable_file import UnreadableFile
from regard.components.settings.data import DataConfig
from regard.core.characters import is_blank
from regard.core.errors import DataError
from regard.core.features import CellError, Feature
from regard.core.formatting import format_count, truncate
from regard.core.kinds import KINDS
from regard.models.tags import add_tag, find_tag, split_tag
from regard.serving.contract import Contract

T = TypeVar("T")
BATCH_SIZE = 64
_CHUNK_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True)
class InputRow:
    """One row of inputs.

    Attributes:
        typed: values by input name as the user typed them: a text, ``[[x, y], ...]``, or a path.
        values: values by input name as the model takes them; None for an empty row.
    """

    typed: Mapping[str, Any]
    values: Mapping[str, Any] | None

    @property
    def description(self) -> str:
        """The row on one short line."""
        text = " ".join(" ".join(str(value) for value in self.typed.values()).splitlines())
        return truncate(text)


@dataclasses.dataclass(frozen=True)
class _Header:
    """The columns of the inputs, and the number of all columns."""

    columns: Sequence[int]
    width: int

    def select(self, cells: Sequence[str], where: str) -> list[str]:
        """Return the inputs of a line.

        Raises:
            UserError: the line has another number of columns.
        """
        if len(cells) != self.width:
            message = f"{format_count(len(cells), 'column')} instead of {self.width} as the header"
            raise DataError(
                message, where, "Separate as many columns by tabs as in the first line."
            )
        return [cells[i] for i in self.columns]


class InputParser:
    """Converts texts to rows.

    Args:
        contract: the model's contract, which lists the inputs.
        on_note: called with a sentence about the columns of standard input, if there are several.
        on_read: called with the number of lines so far, before more of standard input are read.
    """

    def __init__(
        self,
        contract: Contract,
        on_note: Callable[[str], None] = lambda text: None,
        on_read: Callable[[int], None] = lambda lines: None,
    ):
        self._on_note, self._on_read = on_note, on_read
        self._features = [
            Feature(entry["name"], KINDS[entry["kind"]], dimensions=entry.get("dimensions", 2))
            for entry in contract["inputs"]
        ]
        self._images = Images("", decode=True)
        self._parse_cells = CellParser(self._features, self._images, from_text=True)

    def parse(self, texts: Sequence[str]) -> Iterator[list[InputRow]]:
        """Yield batches of rows from arguments, or without any from lines of standard input.

        Raises:
            UserError: see `parse_arguments` and `parse_lines`.
        """
        if texts:
            return split_batches(self.parse_arguments(texts))
        stdin = open(0, "rb", closefd=False)  # noqa: SIM115
        return self.parse_lines(self._counted(read_line_batches(stdin)))

    def _counted(self, batches: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
        """Yield the batches; the caller is done with one when it asks for the next."""
        count = 0
        self._on_read(count)
        for batch in batches:
            yield batch
            count += len(batch)
            self._on_read(count)

    def parse_arguments(self, texts: Sequence[str]) -> Iterator[InputRow]:
        """Yield one row for as many arguments as the model has inputs.

        Raises:
            UserError: an argument is invalid, or the last row is incomplete.
        """
        width = len(self._features)
        for start in range(0, len(texts), width):
            cells = texts[start : start + width]
            last = f" to {start + len(cells)}" if len(cells) > 1 else ""
            where = f"TEXT {start + 1}{last}"
            yield self.parse_row(cells, where, f"Give {width} arguments for each row.")

    def parse_lines(self, batches: Iterable[list[bytes]]) -> Iterator[list[InputRow]]:
        """Yield the rows of batches of lines; tabs separate the inputs.

        A first line with several columns can hold their names, by the rules for data files. It is
        not a row, and the inputs are read from the columns with their names.

        Raises:
            UserError: a line is invalid; the rows before it have been yielded.
        """
        number = 0
        header: _Header | None = None
        for batch in batches:
            rows: list[InputRow] = []
            for line in batch:
                number += 1
                try:
                    if number == 1 and (header := self._read_header(line)):
                        continue
                    rows.append(self._parse_line(line, number, header))
                except DataError:
                    if rows:
                        yield rows
                    raise
            yield rows

    def _read_header(self, line: bytes) -> _Header | None:
        """Return the columns of the inputs if the first line holds their names.

        Raises:
            UserError: the names do not show the inputs.
        """
        cells = line.decode("utf-8-sig", "replace").split("\t")
        corpus = Corpus(DataConfig(train="-"), tuple(self._features))
        if len(cells) < 2:
            return None
        if not is_header(cells, corpus):
            if len(self._features) == 1:
                text = f"Each line of standard input is one text, with its {len(cells)} columns"
                self._on_note(f"{text}. `cut -f1` selects a column.")
            return None
        names = list(map(clean_name, cells))
        try:
            indices = column_indices(corpus, "standard input", names, 1)
        except UnreadableFile as error:
            expected = ", ".join(feature.name for feature in self._features)
            remedy = f"Name the columns {expected} in the first line, or remove it."
            raise DataError(error.problem.text, _location(1), remedy) from None
        columns = [index for index in indices if index is not None]
        pairs = zip(self._features, columns, strict=True)
        read = ", ".join(f"{feature.name} is column {names[i]}" for feature, i in pairs)
        self._on_note(f"The first line holds the names of the columns: {read}.")
        return _Header(columns, len(names))

    def _parse_line(self, line: bytes, number: int, header: _Header | None) -> InputRow:
        where, width = _location(number), len(self._features)
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            message = f"Byte {error.start + 1} of the line is not valid UTF-8."
            remedy = "Convert the input, for example with `iconv -t UTF-8`."
            raise DataError(message, where, remedy) from error
        if is_blank(text):
            cells = [text] if width == 1 else [""] * width
        elif header is not None:
            cells = header.select(text.split("\t"), where)
        else:
            cells = [text] if width == 1 else text.split("\t")
        return self.parse_row(cells, where, "Separate the inputs of a row with tabs.")

    def parse_row(self, cells: Sequence[str], where: str, remedy: str) -> InputRow:
        """Return one row of texts, one for each input.

        Args:
            cells: the texts.
            where: the place of the row, for error messages.
            remedy: how to give another number of texts.

        Raises:
            UserError: a text is invalid, or there are more or fewer than inputs.
        """
        names = [feature.name for feature in self._features]
        if len(cells) != len(names):
            inputs = format_count(len(names), "input")
            message = f"{format_count(len(cells), 'value')}, but the model has {inputs}: "
            raise DataError(message + ", ".join(names), where, remedy)
        if all(map(is_blank, cells)):
            return InputRow(dict(zip(names, cells, strict=True)), None)
        try:
            parsed = self._parse_cells(cells)
        except CellError as error:
            remedy = self._features[error.column].kind.input_remedy
            raise DataError(str(error), where, remedy) from None
        typed: dict[str, Any] = {}
        values: dict[str, Any] = {}
        for feature, value in zip(self._features, parsed, strict=True):
            if feature.kind.names_file:
                typed[feature.name] = value
                values[feature.name] = Path(self._images.path_of(str(value))).read_bytes()
            else:
                typed[feature.name] = values[feature.name] = feature.kind.from_cell(feature, value)
        return InputRow(typed, values)


def _location(number: int) -> str:
    return f"standard input:{number}"


def with_tag(values: Mapping[str, Any], contract: Contract, tag: str | None) -> Mapping[str, Any]:
    """Return a row of inputs whose text begins with a tag, if the model has tags.

    Args:
        values: the inputs of the row by name.
        contract: the model's contract.
        tag: the tag; None if the text already begins with one.

    Raises:
        UserError: the model has no such tag, or the text has no tag, or more than one.
    """
    tags = contract.get("tags", [])
    known = f"its tags are {', '.join(tags)}" if tags else "it has no tags"
    if tag is not None and tag not in tags:
        raise DataError(f"The model has no tag {tag!r}: {known}.", "--tag")
    name = contract["inputs"][0]["name"]
    text = values[name]
    if not tags or is_blank(text):
        return values
    if tag is None:
        tag, text = split_tag(text, tags)
    if find_tag(text, tags):
        raise DataError("The text contains a tag, which may only be its beginning.", truncate(text))
    if tag is None:
        remedy = f"Give --tag, or begin the text with a tag, such as <{tags[0]}>."
        raise DataError(f"The text has no tag: {known}.", truncate(text), remedy)
    return {**values, name: add_tag(tag, text)}


def split_batches(items: Iterable[T], size: int = BATCH_SIZE) -> Iterator[list[T]]:
    """Yield lists of at most ``size`` items."""
    iterator = iter(items)
    while batch := list(itertools.islice(iterator, size)):
        yield batch


def read_line_batches(file: io.BufferedIOBase) -> Iterator[list[bytes]]:
    """Yield batches of lines as they arrive, so that a slow input is not delayed.

    Only a line feed ends a line; a carriage return before it is dropped.
    """
    rest = b""
    while chunk := file.read1(_CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from split_batches(line.removesuffix(b"\r") for line in lines)
    if rest:
        yield [rest.removesuffix(b"\r")]
