"""Run-time parameters: the few settings that a run on a cluster may set anew.

A compiled pipeline is started many times. Its nodes are handed these settings as properties of
their own, beside the JSON that holds the compiled ones, and put them in before they begin. Where a
pipeline runs as it is made there are none, and everything stays as the configuration has it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from components.errors import UserError

if TYPE_CHECKING:
    from tfx.types.component_spec import ExecutionParameter

Value = int | str


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A setting of the configuration that a run may set anew: a whole number from 0 on, or a text.

    Attributes:
        path: its keys in the configuration, the section first.
        about: what it is, for people.
        kind: the type of its values, ``int`` or ``str``.
        nothing: what stands for null, as a parameter always has a value; None: it is never null.
    """

    path: tuple[str, ...]
    about: str
    kind: type[int] | type[str] = int
    nothing: Value | None = None

    @property
    def section(self) -> str:
        """The section of the configuration that it is in."""
        return self.path[0]

    def compiled(self, config: Mapping[str, Any]) -> Value:
        """The value that a configuration has."""
        value: Any = config
        for key in self.path:
            value = value[key]
        return self.nothing if value is None and self.nothing is not None else self.kind(value)

    def setting(self, value: float | str) -> Value | None:
        """What the setting is for a value of the parameter.

        Raises:
            UserError: the value is less than 0.
        """
        if self.nothing is not None and value == self.nothing:
            return None
        if isinstance(value, str):  # a number where it is one, as in a configuration
            return int(value) if value.isascii() and value.isdecimal() else value
        if value < 0:
            message = f"must be at least 0; {value:g} was given"
            raise UserError(message, ".".join(self.path), "Start another run.")
        return int(value)


_SPANS = ("data", "spans")
# A further one is a line here, and a component that takes it.
PARAMETERS: dict[str, Parameter] = {
    "max_epochs": Parameter(
        ("training", "max_epochs"),
        "Passes over the train split at most; 0: no limit.",
        nothing=0,
    ),
    "seed": Parameter(("training", "seed"), "Seed of the weights, of dropout and of shuffling."),
    "first_span": Parameter(
        (*_SPANS, "first"),
        "No span of the data before this number or date, YYYY-MM-DD; empty: all.",
        kind=str,
        nothing="",
    ),
    "last_span": Parameter(
        (*_SPANS, "last"),
        "No span of the data after this number or date, YYYY-MM-DD; empty: all.",
        kind=str,
        nothing="",
    ),
    "span_window": Parameter(
        (*_SPANS, "window"), "So many of the newest spans of the data; 0: all of them.", nothing=0
    ),
}


def parameters_of(config: Mapping[str, Any], spans: bool) -> dict[str, Value]:
    """The parameters that a run of a configuration has, each with the value that it has there.

    Args:
        config: the configuration as plain values.
        spans: whether its data has spans.
    """
    return {
        name: parameter.compiled(config)
        for name, parameter in PARAMETERS.items()
        if spans or parameter.path[:2] != _SPANS
    }


def properties(*sections: str) -> dict[str, ExecutionParameter]:
    """The properties by which a component takes those of some sections, for its specification."""
    from tfx.types.component_spec import ExecutionParameter

    return {
        name: ExecutionParameter(type=PARAMETERS[name].kind, optional=True)
        for name in of_sections(PARAMETERS, *sections)
    }


def of_sections(named: Mapping[str, Any] | None, *sections: str) -> dict[str, Any]:
    """What is there by the names of parameters, of some sections alone."""
    return {
        name: value for name, value in (named or {}).items() if PARAMETERS[name].section in sections
    }


def applied(config: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration, or some sections of one, with the values of this run.

    Args:
        config: the sections.
        given: the properties of an execution, with any others among them.

    Raises:
        UserError: a value is not possible.
    """
    changed = dict(config)
    for name, parameter in PARAMETERS.items():
        if given.get(name) is not None and parameter.section in changed:
            inner = changed
            for key in parameter.path[:-1]:
                inner[key] = dict(inner.get(key) or {})
                inner = inner[key]
            inner[parameter.path[-1]] = parameter.setting(given[name])
    return changed
