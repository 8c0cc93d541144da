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

# What stands for a setting that is null: a parameter always has a value.
NOTHING = 0


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A setting of the configuration that a run may set anew; a whole number from 0 on.

    Attributes:
        section: its section of the configuration.
        key: its key there.
        about: what it is, for people.
        optional: whether the setting may be null, for which 0 stands.
    """

    section: str
    key: str
    about: str
    optional: bool = False

    def compiled(self, config: Mapping[str, Any]) -> int:
        """The value that a configuration has."""
        value = config[self.section][self.key]
        return NOTHING if value is None else int(value)

    def setting(self, value: float) -> int | None:
        """What the setting is for a value of the parameter.

        Raises:
            UserError: the value is less than 0.
        """
        if value < 0:
            where = f"{self.section}.{self.key}"
            raise UserError(f"must be at least 0; {value:g} was given", where, "Start another run.")
        return None if self.optional and value == NOTHING else int(value)


# A further one is a line here, and a component that takes it.
PARAMETERS: dict[str, Parameter] = {
    "max_epochs": Parameter(
        "training", "max_epochs", "Passes over the train split at most; 0: no limit.", optional=True
    ),
    "seed": Parameter("training", "seed", "Seed of the weights, of dropout and of shuffling."),
}


def properties() -> dict[str, ExecutionParameter]:
    """The properties by which a component takes all of them, for its specification."""
    from tfx.types.component_spec import ExecutionParameter

    return {name: ExecutionParameter(type=int, optional=True) for name in PARAMETERS}


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
            section = {**changed[parameter.section], parameter.key: parameter.setting(given[name])}
            changed[parameter.section] = section
    return changed
