"""Tasks: what a model can be trained for. Each folder here is one task.

A task has a description and three parts, each a class in a module of its own. A node of the
pipeline imports the part that it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.core.plugins import PluginTable
from regard.core.suggestions import suggest
from regard.models.tasks.description import Description

if TYPE_CHECKING:
    from regard.models.tasks.network import Network
    from regard.models.tasks.preprocessing import Preprocessing
    from regard.models.tasks.served_model import ServedModule

# Names alone: the parts of a task import Keras or TensorFlow; listing the tasks does not.
_NAMES = ("captioning", "pointer", "similarity", "span", "summarisation", "translation")
_OWN = {name: f"regard.models.tasks.{name}.description:DESCRIPTION" for name in _NAMES}
TASKS: PluginTable[Description] = PluginTable("regard.tasks", _OWN, Description)


def describe(name: str) -> Description:
    """Return the description of a task, without importing TensorFlow.

    Raises:
        ValueError: The task does not exist.
    """
    if name not in TASKS:
        raise ValueError(f"Unknown task {name!r}. {suggest(name, TASKS)}.")
    return TASKS[name]


def get_preprocessing(name: str) -> Preprocessing:
    """Return what converts the raw rows of a task to transformed rows.

    Raises:
        ValueError: The task does not exist.
    """
    description = describe(name)
    part = f"{description.parts.package}.preprocess:{description.parts.preprocessing}"
    return TASKS.resolve(name, part)(description)


def get_network(name: str) -> Network:
    """Return what a task trains; it imports TensorFlow only if Keras computes with it.

    Raises:
        ValueError: The task does not exist.
    """
    description = describe(name)
    part = f"{description.parts.package}.network:{description.parts.network}"
    return TASKS.resolve(name, part)(description)


def get_served_module(name: str) -> type[ServedModule]:
    """Return the class of what a task exports.

    Raises:
        ValueError: The task does not exist.
    """
    parts = describe(name).parts
    return TASKS.resolve(name, f"{parts.package}.served:{parts.served}")


def package(name: str) -> str:
    """Return the package of a task, with its description and ``starter.yaml``."""
    return TASKS.module(name).rpartition(".")[0] or TASKS.module(name)


def preprocessing_modules(name: str) -> list[str]:
    """Return the modules that describe and preprocess a task, for digests of code."""
    return [TASKS.module(name), f"{describe(name).parts.package}.preprocess"]


def training_modules(name: str) -> list[str]:
    """Return the modules that describe, train and export a task, for digests of code."""
    parts = describe(name).parts
    return [TASKS.module(name), f"{parts.package}.network", f"{parts.package}.served"]
