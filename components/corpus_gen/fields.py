"""From the cells of a row to the values of its features, and what is wrong with a cell."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from components.corpus_gen.images import Images
from components.corpus_gen.text import shorten
from components.words import counted
from models.tasks.features import Feature

# A text and the path of an image are a str, several texts a list of them; a number is a float;
# points are flat, x0 y0 x1 y1 ...; positions are a list of int; None is missing, and may be.
Value = str | float | list[str] | list[float] | list[int] | None

# What tf.Examples can hold: float32 and int64.
_LARGEST = 3.4028234663852886e38
_MOST = 2**63


class Wrong(Exception):
    """A cell that holds no value of its feature; ``column`` is its place in the row, from 0."""

    column = 0


class Fields:
    """Makes the values of a row's features out of its cells.

    Args:
        features: of the row, in order.
        images: looks at the images that a row names; None leaves them unseen.
        called: what the file calls each feature, for messages; by default its name.
        written: whether every cell is text that is still to be read, as in a table, or a value
            already, as in JSON.
    """

    def __init__(
        self,
        features: Sequence[Feature],
        images: Images | None = None,
        called: Sequence[str] | None = None,
        written: bool = False,
    ):
        self._features = list(features)
        self._called = list(called or [feature.name for feature in features])
        self._images = images
        self._written = written
        for feature in features:
            if feature.several and feature.kind != "text":
                raise ValueError(f"{feature.name}: only of a text a row may hold several")
        kinds = [feature.kind for feature in features]
        self._points = kinds.index("points") if "points" in kinds else None
        self._positions = [i for i, kind in enumerate(kinds) if kind == "positions"]
        # Nearly all corpora are plain text, of which every cell is its own value.
        self._plain = written and not any(
            f.several or f.optional or f.kind != "text" for f in features
        )

    def __call__(self, cells: Sequence[Any]) -> Sequence[Value]:
        """The values of a row; a cell that is None has no value.

        Raises:
            Wrong: a cell holds no value of its feature; positions and points are counted from 0.
        """
        if self._plain:
            return cells
        values: list[Any] = []
        for column, cell in enumerate(cells):
            try:
                values.append(self._value(column, cell))
            except Wrong as wrong:
                wrong.column = column
                raise
        for column in self._positions:
            self._check_positions(column, values)
        return values

    def _value(self, column: int, cell: Any) -> Value:
        feature, name = self._features[column], self._called[column]
        if self._written and cell is not None:
            cell = _read(feature, name, cell)
        value = None if cell is None else _VALUES[feature.kind](feature, name, cell)
        if value is None and not feature.optional:
            raise Wrong(f"no {feature.name}")
        if feature.kind == "image" and value is not None and self._images is not None:
            reason = self._images.wrong(value)  # type: ignore[arg-type]
            if reason:
                raise Wrong(reason)
        return value

    def _check_positions(self, column: int, values: Sequence[Any]) -> None:
        points = values[self._points] if self._points is not None else None
        most = _MOST if points is None else len(points) // 2
        for position in values[column] or ():
            if 0 <= position < most:
                continue
            told = f"{position} of {counted(most, 'point')}"
            if position < 0 or points is None:
                told = f"{position} is {'less than 0' if position < 0 else 'too large'}"
            wrong = Wrong(f"position {told}")
            wrong.column = column
            raise wrong


def _read(feature: Feature, name: str, cell: str) -> Any:
    """What the text of a cell says; None where nothing stands there."""
    # An empty text is a text, and the checks of the data judge it.
    if not cell.strip() and (feature.optional or feature.kind != "text"):
        return None
    try:
        if feature.kind == "number":
            return float(cell)
        if feature.kind == "points" or (feature.kind == "positions" and "[" in cell):
            return json.loads(cell)
    except (ValueError, RecursionError):
        expected = {"number": "a number", "points": "a JSON list of [x, y]"}
        told = expected.get(feature.kind, "a JSON list")
        raise Wrong(f"{name} {shorten(cell)!r} is not {told}") from None
    if feature.kind == "positions":
        return [_whole(name, word) for word in cell.split()]
    return cell


def _whole(name: str, word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise Wrong(f"{name}: {shorten(word)!r} is not a whole number") from None


def _text(feature: Feature, name: str, cell: Any) -> Value:
    if isinstance(cell, str):
        return [cell] if feature.several else cell
    if not isinstance(cell, list):
        expected = "a string" + (" or a list of strings" if feature.several else "")
        raise Wrong(f"the value of {name!r} is not {expected}")
    for number, item in enumerate(cell, 1):
        if not isinstance(item, str):
            raise Wrong(f"item {number} of {name!r} is not a string")
    # Several texts where one is wanted are its parts, such as sentences: they stay apart.
    return (cell or None) if feature.several else "\n".join(filter(None, cell))


def _path(feature: Feature, name: str, cell: Any) -> Value:
    if not isinstance(cell, str):
        raise Wrong(f"the value of {name!r} is not the path of an image")
    return cell if cell.strip() else None


def _number(feature: Feature, name: str, cell: Any) -> Value:
    if not _is_number(cell):
        raise Wrong(f"{name} {shorten(repr(cell))} is not a number")
    value, told = _finite(cell)
    if told:
        raise Wrong(f"{name} is {told}")
    low, high = feature.low, feature.high
    if (low is not None and value < low) or (high is not None and value > high):
        limits = f"at least {low:g}" if low is not None else ""
        if high is not None:
            limits = f"at most {high:g}" if low is None else f"from {low:g} to {high:g}"
        raise Wrong(f"{name} {_short(value)} is not {limits}")
    return value


def _points(feature: Feature, name: str, cell: Any) -> Value:
    if not isinstance(cell, list | tuple):
        raise Wrong(f"{name} {shorten(repr(cell))} is not a list of [x, y]")
    flat: list[float] = []
    for number, point in enumerate(cell):
        pair = isinstance(point, list | tuple) and len(point) == 2
        if not pair or not all(map(_is_number, point)):
            raise Wrong(f"point {number} is {shorten(repr(point))}, not [x, y]")
        for coordinate in point:
            value, told = _finite(coordinate)
            if told:
                raise Wrong(f"point {number} is {told}")
            flat.append(value)
    if len(cell) < feature.least:
        are = "is" if feature.least == 1 else "are"
        points = counted(len(cell), "point")
        raise Wrong(f"{points}, but at least {feature.least} {are} needed")
    return flat or None


def _positions(feature: Feature, name: str, cell: Any) -> Value:
    if not isinstance(cell, list | tuple):
        raise Wrong(f"{name} {shorten(repr(cell))} is not a list of whole numbers")
    for item in cell:
        if not isinstance(item, int) or isinstance(item, bool):
            raise Wrong(f"{name}: {shorten(repr(item))} is not a whole number")
    return list(cell) or None


_VALUES: dict[str, Callable[[Feature, str, Any], Value]] = {
    "text": _text,
    "image": _path,
    "number": _number,
    "points": _points,
    "positions": _positions,
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _finite(number: Any) -> tuple[float, str | None]:
    """A number as a float, and why it cannot be used."""
    try:
        value = float(number)
    except OverflowError:
        return math.inf, "too large"
    if math.isnan(value):
        return value, "NaN"
    if abs(value) <= _LARGEST:
        return value, None
    return value, "infinite" if math.isinf(value) else "too large"


def _short(value: float) -> str:
    text = f"{value:g}"
    return text if float(text) == value else repr(value)
