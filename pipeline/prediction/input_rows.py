"""Parse model inputs from command-line arguments and from lines of standard input."""

from __future__ import annotations

import dataclasses
import queue
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from regard.components.common.errors import UserError
from regard.components.common.formatting import format_count
from regard.components.data.cell_values import CellError, CellParser
from regard.components.data.images import Images
from regard.models.tasks.description import Feature
from regard.serving.contract import Contract

T = TypeVar("T")
BATCH_SIZE = 64
GATHER_SECONDS = 0.02  # how long an incomplete batch waits for more lines
_MAX_SHOWN = 60
_REMEDIES = {
    "text": "Give a text.",
    "image": "Give the path of an image file.",
    "points": "Give points as JSON, for example [[0.1, 0.2], [0.5, 0.9]].",
}


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
        return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


class InputParser:
    """Converts texts to rows.

    Args:
        contract: the model's contract, which lists the inputs.
    """

    def __init__(self, contract: Contract):
        self._features = [Feature(entry["name"], entry["kind"]) for entry in contract["inputs"]]
        self._images = Images("", decode=True)
        self._parse_cells = CellParser(self._features, self._images, from_text=True)

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
            if len(cells) < width:
                raise self._count_error(len(cells), where, f"Give {width} arguments for each row.")
            yield self._parse_row(cells, where)

    def parse_lines(self, batches: Iterable[list[str]]) -> Iterator[list[InputRow]]:
        """Yield the rows of batches of lines; tabs separate the inputs.

        Raises:
            UserError: a line is invalid; the rows before it have been yielded.
        """
        number = 0
        for batch in batches:
            rows: list[InputRow] = []
            for line in batch:
                number += 1
                try:
                    rows.append(self._parse_line(line, f"standard input:{number}"))
                except UserError:
                    if rows:
                        yield rows
                    raise
            yield rows

    def _parse_line(self, line: str, where: str) -> InputRow:
        width = len(self._features)
        cells = [line] if width == 1 else line.split("\t")
        if width > 1 and not line.strip():
            cells = [""] * width
        if len(cells) != width:
            remedy = "Separate the inputs of a row with tabs."
            raise self._count_error(len(cells), where, remedy)
        return self._parse_row(cells, where)

    def _parse_row(self, cells: Sequence[str], where: str) -> InputRow:
        names = [feature.name for feature in self._features]
        if not any(cell.strip() for cell in cells):
            return InputRow(dict(zip(names, cells, strict=True)), None)
        try:
            parsed = self._parse_cells(cells)
        except CellError as error:
            remedy = _REMEDIES[self._features[error.column].kind]
            raise UserError(str(error), where, remedy) from None
        typed: dict[str, Any] = {}
        values: dict[str, Any] = {}
        for feature, value in zip(self._features, parsed, strict=True):
            typed[feature.name] = values[feature.name] = value
            if feature.kind == "image":
                path = self._images.path_of(str(value))
                values[feature.name] = Path(path).read_bytes()
            elif feature.kind == "points":
                flat: Any = value
                points = list(map(list, zip(flat[::2], flat[1::2], strict=True)))
                typed[feature.name] = values[feature.name] = points
        return InputRow(typed, values)

    def _count_error(self, count: int, where: str, remedy: str) -> UserError:
        names = ", ".join(feature.name for feature in self._features)
        inputs = format_count(len(self._features), "input")
        message = f"{format_count(count, 'value')}, but the model has {inputs}: {names}"
        return UserError(message, where, remedy)


def split_batches(items: Iterable[T], size: int = BATCH_SIZE) -> Iterator[list[T]]:
    """Yield lists of at most ``size`` items."""
    batch: list[T] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def read_line_batches(file: BinaryIO, size: int = BATCH_SIZE) -> Iterator[list[str]]:
    """Yield batches of lines: full ones from a fast input, without delaying a slow one.

    Only a line feed ends a line; a carriage return before it is dropped.

    Raises:
        UserError: a line is not UTF-8; the lines before it have been yielded.
    """
    lines: queue.Queue[bytes | None] = queue.Queue(maxsize=4 * size)

    def read() -> None:
        for line in file:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, name="stdin-reader", daemon=True).start()
    number, at_end = 0, False
    while not at_end:
        batch: list[str] = []
        try:
            while len(batch) < size and not at_end:
                line = lines.get(timeout=GATHER_SECONDS if batch else None)
                at_end = line is None
                if line is not None:
                    number += 1
                    batch.append(_decode(line, number))
        except queue.Empty:
            pass
        except UserError:
            if batch:
                yield batch
            raise
        if batch:
            yield batch


def _decode(line: bytes, number: int) -> str:
    if number == 1:
        line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"Byte {error.start + 1} of the line is not valid UTF-8.",
            where=f"standard input:{number}",
            remedy="Convert the input, for example with `iconv -t UTF-8`.",
        ) from error
