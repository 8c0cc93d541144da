"""Parse the cells of a row into the values of its features."""

import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from regard.components.data.images import Images
from regard.core.characters import is_blank
from regard.core.formatting import format_count, truncate
from regard.models.tasks.description import Feature

# A text or the path of an image is a str, several texts a list of them; a number is a float;
# points are flat, such as x0 y0 x1 y1 ...; positions are a list of int; a missing optional value
# is None.
Value = str | float | list[str] | list[float] | list[int] | None

# The largest values of tf.Examples: float32 and int64.
_MAX_FLOAT = 3.4028234663852886e38
_MAX_INT = 2**63
_LINKS = re.compile(r" *([0-9]{1,6}[-p][0-9]{1,6}( +|$))*")


class CellError(Exception):
    """A cell without a valid value of its feature; ``column`` is its index in the row."""

    column = 0


class CellParser:
    """Parses the cells of a row.

    Args:
        features: of the row, in order.
        images: checks the images that a row names; None: no checks.
        names: what the file calls each feature, for messages; by default its name.
        from_text: whether every cell is text that has to be parsed, as in a table, or a value
            already, as in JSON.
    """

    def __init__(
        self,
        features: Sequence[Feature],
        images: Images | None = None,
        names: Sequence[str] | None = None,
        from_text: bool = False,
    ):
        self._features = list(features)
        self._names = list(names or [feature.name for feature in features])
        self._images = images
        self._from_text = from_text
        for feature in features:
            if feature.multiple and feature.kind != "text":
                raise ValueError(f"{feature.name}: only a text may have several values")
        kinds = [feature.kind for feature in features]
        self._points = kinds.index("points") if "points" in kinds else None
        self._dimensions = features[self._points or 0].dimensions
        self._positions = [
            i for i, f in enumerate(features) if f.kind == "positions" and not f.begins
        ]
        self._parts = [i for i, feature in enumerate(features) if feature.part_of]
        self._index = {feature.name: i for i, feature in enumerate(features)}
        self._begins = {feature.begins: i for i, feature in enumerate(features)}
        # Nearly all corpora are plain text, whose cells are their own values.
        self._plain = from_text and not any(
            f.multiple or f.optional or f.links or f.kind != "text" for f in features
        )

    def __call__(self, cells: Sequence[Any]) -> Sequence[Value]:
        """Return the values of a row; a cell that is None has no value.

        Raises:
            CellError: a cell has no valid value; it counts positions and points from 0.
        """
        if self._plain:
            return cells
        values: list[Any] = []
        column = 0
        try:
            for column, cell in enumerate(cells):
                values.append(self._value(column, cell))
            for column in self._positions:
                self._check_positions(values[column] or (), values)
            for column in self._parts:
                self._check_part(column, values)
        except CellError as error:
            error.column = column
            raise
        except RecursionError:
            raise CellError(f"the value of {self._names[column]!r} is nested too deeply") from None
        return values

    def _value(self, column: int, cell: Any) -> Value:
        feature, name = self._features[column], self._names[column]
        if self._from_text and cell is not None:
            cell = _parse_text(feature, name, cell)
        value = None if cell is None else _CONVERTERS[feature.kind](feature, name, cell)
        if value is None and not feature.optional:
            raise CellError(f"no value for {name!r}")
        if value is not None and feature.kind == "image" and self._images:
            problem = self._images.problem(str(value))
            if problem:
                raise CellError(problem)
        return value

    def _check_part(self, column: int, values: list[Any]) -> None:
        """Check texts or spans of another text; fill in where texts begin if the row does not."""
        feature, part = self._features[column], values[column]
        whole = values[self._index[str(feature.part_of)]]
        if feature.kind == "text":
            start = self._begins[feature.name]
            if values[start] is None:
                values[start] = [whole.find(text) for text in part]
            names = str(feature.part_of), self._features[start].name
            problem = check_texts(whole, part, values[start], names)
        else:
            problem = check_spans(whole, part or (), str(feature.part_of))
        if problem:
            raise CellError(f"{self._names[column]}: {problem}")

    def _check_positions(self, positions: Sequence[int], values: Sequence[Any]) -> None:
        points = values[self._points] if self._points is not None else None
        limit = _MAX_INT if points is None else len(points) // self._dimensions
        for position in positions:
            if position < 0:
                raise CellError(f"invalid position {position}: it is less than 0")
            if position >= limit:
                problem = f"there are only {format_count(limit, 'point')}"
                problem = "it is too large" if points is None else problem
                raise CellError(f"invalid position {position}: {problem}")


def _parse_text(feature: Feature, name: str, cell: str) -> Any:
    """Parse the text of a cell; None for an empty cell."""
    # An empty text is a value; the data checks count it.
    if is_blank(cell) and (feature.optional or feature.kind != "text"):
        return None
    try:
        if feature.kind == "number":
            return float(cell)
        if feature.kind == "points" or (feature.kind == "positions" and "[" in cell):
            return json.loads(cell)
        if feature.kind == "positions":
            return [int(item) for item in cell.split()]
    except (ValueError, RecursionError):
        expected = {"number": "a number", "points": f"a JSON list of {_point_form(feature)}"}
        kind = expected.get(feature.kind, "a list of whole numbers")
        raise CellError(f"{name} {truncate(cell)!r} is not {kind}") from None
    return cell


def _to_text(feature: Feature, name: str, cell: Any) -> Value:
    if isinstance(cell, str):
        if feature.links and not _LINKS.fullmatch(cell):
            raise CellError(f"{name} {truncate(cell)!r} does not have the form 0-0 1-2")
        return [cell] if feature.multiple else cell
    if not isinstance(cell, list):
        expected = "a string" + (" or a list of strings" if feature.multiple else "")
        raise CellError(f"the value of {name!r} is not {expected}")
    for number, item in enumerate(cell, 1):
        if not isinstance(item, str):
            raise CellError(f"item {number} of {name!r} is not a string")
    # A list in place of one text holds its parts, such as sentences: line breaks separate them.
    return (cell or None) if feature.multiple else "\n".join(filter(None, cell))


def _to_path(feature: Feature, name: str, cell: Any) -> Value:
    if not isinstance(cell, str):
        raise CellError(f"the value of {name!r} is not the path of an image")
    return cell if cell.strip() else None


def _to_number(feature: Feature, name: str, cell: Any) -> Value:
    if not _is_number(cell):
        raise CellError(f"{name} {truncate(repr(cell))} is not a number")
    value = _to_float(name, cell)
    low = -math.inf if feature.low is None else feature.low
    high = math.inf if feature.high is None else feature.high
    if not low <= value <= high:
        raise CellError(f"{name} {value:.12g} is not from {low:g} to {high:g}")
    return value


def _to_points(feature: Feature, name: str, cell: Any) -> Value:
    if not isinstance(cell, list | tuple):
        raise CellError(f"{name} {truncate(repr(cell))} is not a list of {_point_form(feature)}")
    flat: list[float] = []
    for number, point in enumerate(cell):
        is_point = isinstance(point, list | tuple) and len(point) == feature.dimensions
        if not is_point or not all(map(_is_number, point)):
            form = _point_form(feature)
            raise CellError(f"point {number} is {truncate(repr(point))}, not {form}")
        flat += [_to_float(f"point {number}", coordinate) for coordinate in point]
    if len(cell) < feature.min_points:
        needed = format_count(feature.min_points, "point")
        raise CellError(f"{needed} needed, got {len(cell)}")
    return flat or None


def _point_form(feature: Feature) -> str:
    if feature.dimensions <= 3:
        return f"[{', '.join('xyz'[: feature.dimensions])}]"
    return f"lists of {feature.dimensions} numbers"


def _to_positions(feature: Feature, name: str, cell: Any) -> Value:
    cell = [cell] if feature.begins and isinstance(cell, int) else cell
    if not isinstance(cell, list | tuple):
        raise CellError(f"{name} {truncate(repr(cell))} is not a list of whole numbers")
    for item in cell:
        if not isinstance(item, int) or isinstance(item, bool):
            raise CellError(f"{name}: {truncate(repr(item))} is not a whole number")
    return list(cell) or None


_CONVERTERS: dict[str, Callable[[Feature, str, Any], Value]] = {
    "text": _to_text,
    "image": _to_path,
    "number": _to_number,
    "points": _to_points,
    "positions": _to_positions,
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _to_float(name: str, number: Any) -> float:
    """Return a number that a tf.Example can hold as a float."""
    try:
        value = float(number)
    except OverflowError:
        raise CellError(f"{name} is too large") from None
    if not math.isfinite(value):
        raise CellError(f"{name} is {'NaN' if math.isnan(value) else 'infinite'}")
    if abs(value) > _MAX_FLOAT:
        raise CellError(f"{name} is too large")
    return value


def check_texts(
    whole: str, parts: Sequence[str], starts: Sequence[int], names: Sequence[str]
) -> str:
    """Return what is wrong with texts that begin at characters of another text; empty if nothing.

    Args:
        whole: the text that contains the others.
        parts: the texts.
        starts: where each of them begins.
        names: what the whole text and the starts are called.
    """
    if len(starts) != len(parts):
        return f"{names[1]} has {len(starts)} values for {len(parts)} texts"
    for part, start in zip(parts, starts, strict=True):
        if not part.strip():
            return "the text is empty; rows without one are not supported"
        if part not in whole:
            return f"{truncate(part)!r} does not occur in {names[0]}"
        if start < 0 or not whole.startswith(part, start):
            actual, place = truncate(whole[max(start, 0) :][: len(part)]), truncate(str(start))
            reason = f"{names[0]} has {actual!r} there"
            return f"{names[1]} {place} is not where {truncate(part)!r} begins: {reason}"
    return ""


def check_spans(whole: str, edges: Sequence[int], name: str) -> str:
    """Return what is wrong with parts, given by begin and end; empty if nothing."""
    if len(edges) % 2:
        return "a part has a begin, but no end"
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        if not 0 <= begin < end <= len(whole):
            return f"{begin} to {end} is no part of the {len(whole)} characters of {name}"
    return ""
