"""Run-time parameters: settings that each run on a cluster can change.

A compiled pipeline runs many times. Its nodes receive these settings as separate properties, next
to the JSON with the compiled values, and apply them before they start. A local pipeline has none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from regard.core.errors import UserError

if TYPE_CHECKING:
    from tfx.types.component_spec import ExecutionParameter

T = TypeVar("T")
Value = int | str


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A setting that a run can change: a whole number from 0, or a text.

    Attributes:
        path: its keys in the configuration, the section first.
        description: its description for the user.
        kind: the type of its values, ``int`` or ``str``.
        null: the value that stands for null, because a parameter always has a value; None if the
            setting is never null.
    """

    path: tuple[str, ...]
    description: str
    kind: type[int] | type[str] = int
    null: Value | None = None

    def value_in(self, config: Mapping[str, Any]) -> Value:
        """Return its value in a configuration."""
        value: Any = config
        for key in self.path:
            value = value[key]
        return self.null if value is None and self.null is not None else self.kind(value)

    def to_setting(self, value: float | str) -> Value | None:
        """Convert a value of the parameter to the value of the setting.

        Raises:
            UserError: the value is less than 0.
        """
        if self.null is not None and value == self.null:
            return None
        if isinstance(value, str):  # digits are a number, as in a configuration
            return int(value) if value.isascii() and value.isdecimal() else value
        if value < 0:
            message = f"must be at least 0; got {value:g}"
            raise UserError(message, ".".join(self.path), "Start another run.")
        return int(value)


_SPANS = ("data", "spans")
# A new parameter needs an entry here, and a component that takes it.
PARAMETERS: dict[str, Parameter] = {
    "max_epochs": Parameter(
        ("training", "max_epochs"), "Maximum passes over the train split; 0: no limit.", null=0
    ),
    "seed": Parameter(("training", "seed"), "Seed of the weights, of dropout and of shuffling."),
    "first_span": Parameter(
        (*_SPANS, "first"),
        "First span of the data, a number or a date YYYY-MM-DD; empty: the oldest.",
        kind=str,
        null="",
    ),
    "last_span": Parameter(
        (*_SPANS, "last"),
        "Last span of the data, a number or a date YYYY-MM-DD; empty: the newest.",
        kind=str,
        null="",
    ),
    "span_window": Parameter(
        (*_SPANS, "window"), "Number of the newest spans of the data; 0: all of them.", null=0
    ),
}


def parameters_of(config: Mapping[str, Any], has_spans: bool) -> dict[str, Value]:
    """Return the parameters of a configuration's runs, with their values in the configuration.

    Args:
        config: the configuration as plain values.
        has_spans: whether its data has spans.
    """
    return {
        name: parameter.value_in(config)
        for name, parameter in PARAMETERS.items()
        if has_spans or parameter.path[:2] != _SPANS
    }


def properties(*sections: str) -> dict[str, ExecutionParameter]:
    """Return the properties of a component that takes the parameters of some sections."""
    from tfx.types.component_spec import ExecutionParameter

    return {
        name: ExecutionParameter(type=PARAMETERS[name].kind, optional=True)
        for name in of_sections(PARAMETERS, *sections)
    }


def of_sections(by_name: Mapping[str, T] | None, *sections: str) -> dict[str, T]:
    """Return the items whose parameters belong to some sections."""
    return {
        name: item for name, item in (by_name or {}).items() if PARAMETERS[name].path[0] in sections
    }


def apply_parameters(config: Mapping[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration, or some of its sections, with the values of this run.

    Args:
        config: the sections.
        properties: the properties of an execution; other properties are ignored.

    Raises:
        UserError: a value is invalid.
    """
    changed = dict(config)
    for name, parameter in PARAMETERS.items():
        if properties.get(name) is not None and parameter.path[0] in changed:
            inner = changed
            for key in parameter.path[:-1]:
                inner[key] = dict(inner.get(key) or {})
                inner = inner[key]
            inner[parameter.path[-1]] = parameter.to_setting(properties[name])
    return changed
