"""The search space: one dimension for each configuration key, and the values it can take."""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

if TYPE_CHECKING:
    import keras_tuner

# Significant digits of a sampled number; more where its range is narrow. The rounded number is
# what a trial trains with and what the tuned file contains.
_DIGITS = 4


@dataclasses.dataclass(frozen=True)
class Dimension:
    """One configuration key with a range of numbers or a list of choices.

    Attributes:
        key: such as ``training.learning_rate``.
        low: the lower bound, inclusive.
        high: the upper bound, inclusive.
        step: the difference between two values, or their ratio with ``log``; None: continuous.
        log: whether values are sampled uniformly on a logarithmic scale.
        integer: whether values are integers.
        choices: values of any type instead of a range, as written in the file.
    """

    key: str
    low: float = 0.0
    high: float = 0.0
    step: float | None = None
    log: bool = False
    integer: bool = False
    choices: Sequence[JsonValue] = ()

    def register(self, hyperparameters: keras_tuner.HyperParameters) -> None:
        """Add this dimension to KerasTuner's hyperparameters."""
        if self.choices:
            hyperparameters.Choice(self.key, self._choice_labels())
            return
        number = int if self.integer else float
        step = None if self.step is None else number(self.step)
        add = hyperparameters.Int if self.integer else hyperparameters.Float
        sampling = "log" if self.log else "linear"
        add(self.key, number(self.low), number(self.high), step=step, sampling=sampling)

    def round(self, sample: Any) -> Any:
        """Round a number that KerasTuner sampled to the digits that matter for its range."""
        if self.choices:
            return sample
        if self.integer:
            return int(sample)
        if self.log:
            extent = (self.high - self.low) / self.low if self.step is None else self.step - 1
            digits = _DIGITS + max(0, -_exponent(extent))
            value = float(f"{sample:.{digits}g}")
        else:
            extent = self.high - self.low if self.step is None else self.step
            value = round(sample, _DIGITS - 1 - _exponent(extent))
        return min(self.high, max(self.low, value))

    def config_value(self, sample: Any) -> JsonValue:
        """Return the configuration value for a sample."""
        if not self.choices:
            return self.round(sample)
        return self.choices[self._choice_labels().index(sample)]

    def test_values(self) -> list[JsonValue]:
        """Return values for a validity check: both bounds and the middle, or all choices."""
        if self.choices:
            return list(self.choices)
        middle = math.sqrt(self.low * self.high) if self.log else (self.low + self.high) / 2
        if self.step is not None and not self.log:
            middle = self.low + self.step * ((middle - self.low) // self.step)
        values = (self.low, self.high, middle)
        return [int(value) if self.integer else self.round(value) for value in values]

    def _choice_labels(self) -> list[Any]:
        """Return the choices as KerasTuner accepts them: of one scalar type, or as JSON."""
        kinds = {type(choice) for choice in self.choices}
        if len(kinds) == 1 and kinds <= {int, float, str}:
            return list(self.choices)
        return [json.dumps(choice, sort_keys=True) for choice in self.choices]


@dataclasses.dataclass(frozen=True)
class SearchSpace:
    """All dimensions, in the order of the file."""

    dimensions: tuple[Dimension, ...]

    def hyperparameters(self) -> keras_tuner.HyperParameters:
        """Return the space as KerasTuner's hyperparameters."""
        import keras_tuner

        hyperparameters = keras_tuner.HyperParameters()
        for dimension in self.dimensions:
            dimension.register(hyperparameters)
        return hyperparameters

    def round(self, samples: Mapping[str, Any]) -> dict[str, Any]:
        """Round the samples of all dimensions; other keys, the oracle's own, stay as they are."""
        rounded = {d.key: d.round(samples[d.key]) for d in self.dimensions}
        return {**samples, **rounded}

    def config_values(self, samples: Mapping[str, Any]) -> dict[str, JsonValue]:
        """Return the configuration values by key for samples."""
        return {d.key: d.config_value(samples[d.key]) for d in self.dimensions}


def _exponent(number: float) -> int:
    """Return the decimal exponent of a positive number: -3 for 0.005."""
    return math.floor(math.log10(min(number, sys.float_info.max)))


def replace_values(
    config: Mapping[str, Any], values: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return a copy of a configuration, or of some of its sections, with other values.

    Args:
        config: the configuration as JSON values.
        values: by key, such as ``training.learning_rate``; an item of a list by its number from 0,
            such as ``model.encoder.0.units``. The sections of all keys must exist.
    """
    changed: Any = copy.deepcopy(dict(config))
    for key, value in values.items():
        *sections, name = key.split(".")
        parent = functools.reduce(lookup, sections, changed)
        parent[int(name) if isinstance(parent, list) else name] = copy.deepcopy(value)
    return changed


def lookup(section: Any, name: str) -> Any:
    """Return the value of a part of a key in a mapping, a list or a section."""
    if isinstance(section, list | tuple):
        return section[int(name)]
    return section[name] if isinstance(section, dict) else getattr(section, name)
