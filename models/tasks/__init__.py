"""Tasks: what a model can be trained for. Each folder here is one task."""

from __future__ import annotations

from importlib import import_module
from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.models.tasks.base import Task
    from regard.models.tasks.description import Description

# Names alone: implementing a task needs TensorFlow, listing the tasks does not.
TASKS = ("captioning", "pointer", "similarity", "summarisation", "translation")


def describe(name: str) -> Description:
    """Return the description of a task, without importing TensorFlow.

    Raises:
        ValueError: The task does not exist.
    """
    if name not in TASKS:
        raise ValueError(f"Unknown task {name!r}. Choices: {', '.join(sorted(TASKS))}.")
    return import_module(f"regard.models.tasks.{name}.settings").DESCRIPTION


def get(name: str) -> Task:
    """Return a task.

    Raises:
        ValueError: The task does not exist.
    """
    description = describe(name)
    return resolve_name(description.implementation)(description)
