"""Points: lists of coordinates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from regard.core.features import NUMBERS, CellError, Feature, Kind, Value
from regard.core.formatting import format_count, truncate
from regard.core.kinds.number import is_number, shortest_decimals, to_float

if TYPE_CHECKING:
    import pyarrow as pa


class PointsKind(Kind):
    """The points of a row; their coordinates are one flat list."""

    name = "points"
    stored_list = "float_list"
    tensor = ("float32", "[batch, n, dimensions]")
    has_length = True
    column_depths = (2,)
    column_values = "lists of points"
    column_types = NUMBERS
    input_remedy = "Give points as JSON, for example [[0.1, 0.2], [0.5, 0.9]]."

    def looks_like(self, text: str) -> bool:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return False
        return isinstance(value, list) and bool(value) and isinstance(value[0], list)

    def parse(self, feature: Feature, name: str, cell: str) -> Any:
        try:
            return json.loads(cell)
        except (ValueError, RecursionError):
            message = f"{name} {truncate(cell)!r} is not a JSON list of {_form(feature)}"
            raise CellError(message) from None

    def convert(self, feature: Feature, name: str, value: Any) -> Value:
        if not isinstance(value, list | tuple):
            raise CellError(f"{name} {truncate(repr(value))} is not a list of {_form(feature)}")
        flat: list[float] = []
        for number, point in enumerate(value):
            is_point = isinstance(point, list | tuple) and len(point) == feature.dimensions
            if not is_point or not all(map(is_number, point)):
                raise CellError(f"point {number} is {truncate(repr(point))}, not {_form(feature)}")
            flat += [to_float(f"point {number}", coordinate) for coordinate in point]
        if len(value) < feature.min_points:
            needed = format_count(feature.min_points, "point")
            raise CellError(f"{needed} needed, got {len(value)}")
        return flat or None

    def length_unit(self, feature: Feature) -> str | None:
        return "point"

    def lengths(self, feature: Feature, values: Sequence[Any]) -> Iterable[int]:
        return [len(values) // feature.dimensions]

    def format(self, feature: Feature, values: Sequence[Any]) -> str:
        numbers = super().format(feature, values)
        if not values:
            return numbers
        return f"{format_count(len(values) // feature.dimensions, 'point')}: {numbers}"

    def to_input(self, feature: Feature, values: list[Any]) -> Any:
        if not values and feature.optional:
            return None
        return split_points(shortest_decimals(values), feature.dimensions)

    def from_cell(self, feature: Feature, value: Any) -> Any:
        return split_points(value, feature.dimensions)

    def to_argument(self, value: Any) -> str:
        return json.dumps(value)

    def summarize(self, value: Any) -> str:
        return f"{len(value)} points"

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.list_(pa.list_(pa.float64()))


def split_points(flat: Sequence[float], dimensions: int) -> list[list[float]]:
    """Return flat coordinates as one list per point."""
    starts = range(0, len(flat), dimensions)
    return [list(flat[start : start + dimensions]) for start in starts]


def _form(feature: Feature) -> str:
    if feature.dimensions <= 3:
        return f"[{', '.join('xyz'[: feature.dimensions])}]"
    return f"lists of {feature.dimensions} numbers"
