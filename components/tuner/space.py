"""What is searched: one dimension a key of the configuration, and the values it can take."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras_tuner

# Of a number that is drawn, or more where its range is narrow; what is trained with is what stands
# in the file afterwards.
_DIGITS = 4


@dataclasses.dataclass(frozen=True)
class Dimension:
    """One key and its values: a range of numbers, or a few choices.

    Attributes:
        key: of the configuration, such as ``training.learning_rate``.
        low: the lower end of the range, which belongs to it.
        high: the upper end, which belongs to it.
        step: between two values, or the factor between them with ``log``; None: any value.
        log: whether the logarithm is what is drawn evenly.
        whole: whether only whole numbers are.
        choices: any values, in place of a range, as they are written.
        meanings: the same as they are read, with defaults filled in; empty where that is the same.
    """

    key: str
    low: float = 0.0
    high: float = 0.0
    step: float | None = None
    log: bool = False
    whole: bool = False
    choices: Sequence[Any] = ()
    meanings: Sequence[Any] = ()

    def register(self, space: keras_tuner.HyperParameters) -> None:
        """Adds this dimension to KerasTuner's space."""
        if self.choices:
            space.Choice(self.key, self._labels())
            return
        kind = int if self.whole else float
        step = None if self.step is None else kind(self.step)
        options = {"step": step, "sampling": "log" if self.log else "linear"}
        make = space.Int if self.whole else space.Float
        make(self.key, kind(self.low), kind(self.high), **options)

    def rounded(self, drawn: Any) -> Any:
        """What KerasTuner drew, without digits that nobody wants in a file."""
        if self.choices:
            return drawn
        if self.whole:
            return int(drawn)
        if self.log:
            extent = (self.high - self.low) / self.low if self.step is None else self.step - 1
            digits = _DIGITS + max(0, -_magnitude(extent))
            value = float(f"{drawn:.{digits}g}")
        else:
            extent = self.high - self.low if self.step is None else self.step
            value = round(drawn, _DIGITS - 1 - _magnitude(extent))
        return min(self.high, max(self.low, value))

    def value(self, drawn: Any, read: bool = False) -> Any:
        """The configuration's value for what KerasTuner drew, as it is written or ``read``."""
        if not self.choices:
            return self.rounded(drawn)
        values = self.meanings if read and self.meanings else self.choices
        return values[self._labels().index(drawn)]

    def probes(self) -> list[Any]:
        """Values that tell whether all are possible: the ends and the middle, or all choices."""
        if self.choices:
            return list(self.choices)
        middle = math.sqrt(self.low * self.high) if self.log else (self.low + self.high) / 2
        if self.step is not None and not self.log:
            middle = self.low + self.step * ((middle - self.low) // self.step)
        probes = [self.low, self.high, middle]
        return [int(value) if self.whole else self.rounded(value) for value in probes]

    def _labels(self) -> list[Any]:
        """The choices as KerasTuner takes them: all of one plain kind, or all as JSON."""
        kinds = {type(choice) for choice in self.choices}
        if len(kinds) == 1 and kinds <= {int, float, str}:
            return list(self.choices)
        return [json.dumps(choice, sort_keys=True) for choice in self.choices]


@dataclasses.dataclass(frozen=True)
class Space:
    """All dimensions, in the order of the file."""

    dimensions: tuple[Dimension, ...]

    @classmethod
    def of(cls, plain: Iterable[Mapping[str, Any]]) -> Space:
        """The space that ``plain`` gave."""
        return cls(tuple(Dimension(**fields) for fields in plain))

    def plain(self) -> list[dict[str, Any]]:
        """The space as plain data, for a component's properties."""
        return [dataclasses.asdict(dimension) for dimension in self.dimensions]

    def hyperparameters(self) -> keras_tuner.HyperParameters:
        """The space as KerasTuner has it."""
        import keras_tuner

        made = keras_tuner.HyperParameters()
        for dimension in self.dimensions:
            dimension.register(made)
        return made

    def rounded(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """Hyperparameters as they are used; those that are the oracle's own stay as they are."""
        ours = {dimension.key: dimension for dimension in self.dimensions}
        return {
            name: ours[name].rounded(value) if name in ours else value
            for name, value in drawn.items()
        }

    def values(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """The configuration's values by key for what the oracle drew, as they are written."""
        return {d.key: d.value(drawn[d.key]) for d in self.dimensions}

    def settings(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """The same as they are read, with defaults filled in."""
        return {d.key: d.value(drawn[d.key], read=True) for d in self.dimensions}


def _magnitude(number: float) -> int:
    """The power of ten that a number above 0 begins with: -3 of 0.005."""
    return math.floor(math.log10(min(number, sys.float_info.max)))


def with_values(config: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as plain data, or some sections of it, with other values at some keys.

    Args:
        config: is not touched.
        values: by key, such as ``training.learning_rate``; every section of a key is there.
    """
    changed = copy.deepcopy(dict(config))
    for key, value in values.items():
        *sections, name = key.split(".")
        into = changed
        for section in sections:
            into = into[section]
        into[name] = copy.deepcopy(value)
    return changed
