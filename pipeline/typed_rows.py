"""What a user types, as rows to ask a model: arguments, or lines of standard input."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from components.corpus_gen.fields import Fields, Wrong
from components.corpus_gen.images import Images
from components.errors import UserError
from components.words import counted
from models.tasks.features import Feature

_SHOWN_CHARACTERS = 60


@dataclasses.dataclass(frozen=True)
class TypedRow:
    """One row.

    Attributes:
        inputs: by name, as it was typed: a text, points as ``[[x, y], ...]``, an image's path.
        asked: by name, as the model takes it; None where there is nothing to ask.
    """

    inputs: Mapping[str, Any]
    asked: Mapping[str, Any] | None

    @property
    def shown(self) -> str:
        """The row on one short line."""
        text = " ".join(" ".join(str(value) for value in self.inputs.values()).splitlines())
        return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


class Reader:
    """Makes rows of what was typed.

    Args:
        contract: the model's, which says what it takes.
    """

    def __init__(self, contract: Mapping[str, Any]):
        self._inputs = [Feature(entry["name"], entry["kind"]) for entry in contract["inputs"]]
        self._images = Images({"root": ""}, decode=True)
        self._fields = Fields(self._inputs, self._images, written=True)

    def arguments(self, texts: Sequence[str]) -> Iterator[TypedRow]:
        """A row for as many arguments as the model has inputs.

        Raises:
            UserError: an argument is no such input, or the last row is not whole.
        """
        width = len(self._inputs)
        for start in range(0, len(texts), width):
            cells = texts[start : start + width]
            last = f" to {start + len(cells)}" if len(cells) > 1 else ""
            where = f"TEXT {start + 1}{last}"
            if len(cells) < width:
                raise self._uneven(len(cells), where, f"Give {width} arguments for each row.")
            yield self._row(cells, where)

    def lines(self, batches: Iterable[list[str]]) -> Iterator[list[TypedRow]]:
        """The rows of batches of lines; several inputs are separated by tabs.

        Raises:
            UserError: a line is no row; the rows before it have been given.
        """
        number = 0
        for batch in batches:
            rows: list[TypedRow] = []
            for line in batch:
                number += 1
                try:
                    rows.append(self._line(line, f"standard input:{number}"))
                except UserError:
                    if rows:
                        yield rows
                    raise
            yield rows

    def _line(self, line: str, where: str) -> TypedRow:
        width = len(self._inputs)
        cells = [line] if width == 1 else line.split("\t")
        if width > 1 and not line.strip():
            cells = [""] * width
        if len(cells) != width:
            raise self._uneven(len(cells), where, "Separate the inputs with tabs, one row a line.")
        return self._row(cells, where)

    def _row(self, cells: Sequence[str], where: str) -> TypedRow:
        names = [feature.name for feature in self._inputs]
        if not any(cell.strip() for cell in cells):
            return TypedRow(dict(zip(names, cells, strict=True)), None)
        try:
            values: Sequence[Any] = self._fields(cells)
        except Wrong as wrong:
            raise UserError(str(wrong), where, _HOW[self._inputs[wrong.column].kind]) from None
        inputs: dict[str, Any] = {}
        asked: dict[str, Any] = {}
        for feature, value in zip(self._inputs, values, strict=True):
            inputs[feature.name] = asked[feature.name] = value
            if feature.kind == "image":
                asked[feature.name] = Path(self._images.place(str(value))).read_bytes()
            elif feature.kind == "points":
                points = list(map(list, zip(value[::2], value[1::2], strict=True)))
                inputs[feature.name] = asked[feature.name] = points
        return TypedRow(inputs, asked)

    def _uneven(self, given: int, where: str, remedy: str) -> UserError:
        names = ", ".join(feature.name for feature in self._inputs)
        wanted = counted(len(self._inputs), "input")
        return UserError(
            f"{counted(given, 'value')}, but the model has {wanted}: {names}", where, remedy
        )


# What to do about an input that cannot be read, by its kind.
_HOW = {
    "text": "Give a text.",
    "image": "Give the path of an image file.",
    "points": "Give points as JSON, such as [[0.1, 0.2], [0.5, 0.9]].",
}
