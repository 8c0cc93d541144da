"""Positions: indices of a row's points, or edges of parts of a text in characters."""

from __future__ import annotations

import json
import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from regard.core.features import CellError, Feature, Kind, Value
from regard.core.formatting import format_count, truncate
from regard.core.kinds.points import PointsKind

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_INT = 2**63  # of tf.Examples


class PositionsKind(Kind):
    """Whole numbers from 0."""

    name = "positions"
    selects_points = True
    stored_list = "int64_list"
    tensor = ("int32", "[batch, n]")
    has_length = True
    column_depths = (1,)
    column_values = "lists of whole numbers"
    column_types = ("integer",)

    def is_output(self, value: Any) -> bool:
        return not isinstance(value, str | numbers.Real)

    def looks_like(self, text: str) -> bool:
        numbers = text.strip(" []")
        return bool(numbers) and all(map(str.isdecimal, numbers.split()))

    def parse(self, feature: Feature, name: str, cell: str) -> Any:
        try:
            return json.loads(cell) if "[" in cell else [int(item) for item in cell.split()]
        except (ValueError, RecursionError):
            message = f"{name} {truncate(cell)!r} is not a list of whole numbers"
            raise CellError(message) from None

    def convert(self, feature: Feature, name: str, value: Any) -> Value:
        items = [value] if feature.begins and isinstance(value, int) else value
        if not isinstance(items, list | tuple):
            raise CellError(f"{name} {truncate(repr(items))} is not a list of whole numbers")
        for item in items:
            if not isinstance(item, int) or isinstance(item, bool):
                raise CellError(f"{name}: {truncate(repr(item))} is not a whole number")
        return list(items) or None

    def check_in_row(
        self, feature: Feature, name: str, features: Sequence[Feature], values: list[Any]
    ) -> None:
        """Check that the positions are those of points, or of parts of a text, in the row."""
        if feature.begins:
            return  # checked with the texts that begin there
        names = [other.name for other in features]
        positions = values[names.index(feature.name)] or ()
        count = _count_points(features, values)
        for position in positions:
            if position < 0:
                raise CellError(f"invalid position {position}: it is less than 0")
            if count is not None and position >= count:
                problem = f"there are only {format_count(count, 'point')}"
                raise CellError(f"invalid position {position}: {problem}")
            if position >= _MAX_INT:
                raise CellError(f"invalid position {position}: it is too large")
        if feature.part_of is not None:
            whole = values[names.index(feature.part_of)]
            problem = check_spans(whole, positions, feature.part_of)
            if problem:
                raise CellError(f"{name}: {problem}")

    def to_input(self, feature: Feature, values: list[Any]) -> Any:
        return values if values or not feature.optional else None

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.list_(pa.int64())


def _count_points(features: Sequence[Feature], values: Sequence[Any]) -> int | None:
    """Return the number of points of a row; None if it has none."""
    for feature, value in zip(features, values, strict=True):
        if isinstance(feature.kind, PointsKind) and value is not None:
            return len(value) // feature.dimensions
    return None


def check_spans(whole: str, edges: Sequence[int], name: str) -> str:
    """Return what is wrong with parts, given by begin and end; empty if nothing."""
    if len(edges) % 2:
        return "a part has a begin, but no end"
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        if not 0 <= begin < end <= len(whole):
            return f"{begin} to {end} is no part of the {len(whole)} characters of {name}"
    return ""
