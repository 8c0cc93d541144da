"""Tasks: what a model can be trained for. Each folder here is one task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.core.plugins import PluginTable, plugin_modules
from regard.core.suggestions import suggest
from regard.models.tasks.description import Description

if TYPE_CHECKING:
    from regard.models.tasks.base import Task

# Names alone: implementing a task needs TensorFlow, listing the tasks does not.
_NAMES = ("captioning", "pointer", "similarity", "span", "summarisation", "translation")
_OWN = {name: f"regard.models.tasks.{name}.settings:DESCRIPTION" for name in _NAMES}
TASKS: PluginTable[Description] = PluginTable("regard.tasks", _OWN, Description)


def describe(name: str) -> Description:
    """Return the description of a task, without importing TensorFlow.

    Raises:
        ValueError: The task does not exist.
    """
    if name not in TASKS:
        raise ValueError(f"Unknown task {name!r}. {suggest(name, TASKS)}.")
    return TASKS[name]


def package(name: str) -> str:
    """Return the package of a task, with its code and ``starter.yaml``."""
    modules = [] if name in TASKS.own else plugin_modules(f'"{name}"')
    return modules[0].partition(".")[0] if modules else f"regard.models.tasks.{name}"


def get(name: str) -> Task:
    """Return a task.

    Raises:
        ValueError: The task does not exist.
    """
    description = describe(name)
    own = {name: description.implementation} if name in TASKS.own else {}
    return PluginTable("regard.tasks", own, object, implementations=True)[name](description)
