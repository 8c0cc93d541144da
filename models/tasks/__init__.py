"""Tasks: what one can train. Each file here is one, and the only place that knows it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.tasks.base import Task

# Modules by name and not classes: a task imports TensorFlow, its name does not.
TASKS: dict[str, str] = {"translation": "models.tasks.translation"}


def get(name: str) -> Task:
    """The task called ``name``.

    Raises:
        ValueError: there is none.
    """
    if name not in TASKS:
        raise ValueError(f"Unknown task {name!r}. Choices: {', '.join(sorted(TASKS))}.")
    return import_module(TASKS[name]).TASK
