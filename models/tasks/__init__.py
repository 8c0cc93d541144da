"""Tasks: what one can train. Each folder here is one, and the only place that knows it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.tasks.base import Task
    from models.tasks.description import Description

# Names alone: what a task can do needs TensorFlow, what it is called does not.
TASKS = ("captioning", "pointer", "similarity", "summarisation", "translation")


def describe(name: str) -> Description:
    """What the task called ``name`` says of itself; without TensorFlow.

    Raises:
        ValueError: there is none.
    """
    return import_module(_package(name)).DESCRIPTION


def get(name: str) -> Task:
    """The task called ``name``.

    Raises:
        ValueError: there is none.
    """
    return import_module(f"{_package(name)}.task").TASK


def _package(name: str) -> str:
    if name not in TASKS:
        raise ValueError(f"Unknown task {name!r}. Choices: {', '.join(sorted(TASKS))}.")
    return f"models.tasks.{name}"
