"""Numbers."""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from regard.core.features import NUMBERS, CellError, Feature, Kind, Value
from regard.core.formatting import truncate

if TYPE_CHECKING:
    import pyarrow as pa

# The largest float32, which tf.Examples hold.
_MAX_FLOAT = 3.4028234663852886e38


class NumberKind(Kind):
    """A number, perhaps in a range."""

    name = "number"
    is_number = True
    stored_list = "float_list"
    column_values = "numbers"
    column_types = NUMBERS

    def is_output(self, value: Any) -> bool:
        return isinstance(value, numbers.Real)

    def looks_like(self, text: str) -> bool:
        return is_number_text(text)

    def parse(self, feature: Feature, name: str, cell: str) -> Any:
        try:
            return float(cell)
        except ValueError:
            raise CellError(f"{name} {truncate(cell)!r} is not a number") from None

    def convert(self, feature: Feature, name: str, value: Any) -> Value:
        if not is_number(value):
            raise CellError(f"{name} {truncate(repr(value))} is not a number")
        number = to_float(name, value)
        low = -math.inf if feature.low is None else feature.low
        high = math.inf if feature.high is None else feature.high
        if not low <= number <= high:
            key = f" (`{feature.limits_key}`)" if feature.limits_key else ""
            raise CellError(f"{name} {number:.12g} is not from {low:g} to {high:g}{key}")
        return number

    def to_input(self, feature: Feature, values: list[Any]) -> Any:
        return super().to_input(feature, shortest_decimals(values))

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.float64()


def is_number_text(text: str) -> bool:
    """Return whether a text is a number, such as an identifier or a score."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_number(value: Any) -> bool:
    """Return whether a value of JSON, or of an Arrow column, is a number."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def to_float(name: str, number: Any) -> float:
    """Return a number that a tf.Example can hold as a float.

    Raises:
        CellError: There is none.
    """
    try:
        value = float(number)
    except OverflowError:
        raise CellError(f"{name} is too large") from None
    if not math.isfinite(value):
        raise CellError(f"{name} is {'NaN' if math.isnan(value) else 'infinite'}")
    if abs(value) > _MAX_FLOAT:
        raise CellError(f"{name} is too large")
    return value


def shortest_decimals(values: list[float]) -> list[float]:
    """Return the shortest decimals of float32 values: 4.2 instead of 4.199999809265137."""
    import numpy as np

    return np.asarray(values, np.float32).astype(str).astype(float).tolist()
