"""What the completion of a shell offers: tasks, models, runs, nodes, keys and data sets.

A function imports what it needs when it is called, because the options of all commands refer to
it; none imports TensorFlow. An error means that there is nothing to offer: it must not disturb
what the user types.
"""

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

_Complete = Callable[[typer.Context, str], Sequence[str]]


def _quiet(function: _Complete) -> _Complete:
    """Return a function that offers nothing in place of an error."""

    @functools.wraps(function)
    def complete(context: typer.Context, incomplete: str) -> Sequence[str]:
        try:
            return function(context, incomplete)
        except Exception:
            return []

    return complete


@_quiet
def complete_task(context: typer.Context, incomplete: str) -> Sequence[str]:
    """Offer the tasks."""
    from regard.models.tasks import TASKS

    return list(TASKS)


@_quiet
def complete_data_set(context: typer.Context, incomplete: str) -> Sequence[str]:
    """Offer the data sets that the command can write."""
    from regard.pipeline.datasets import DATASETS

    return [name for name, (command, _) in DATASETS.items() if command == context.info_name]


@_quiet
def complete_node(context: typer.Context, incomplete: str) -> Sequence[str]:
    """Offer the nodes of a pipeline, in their order."""
    from regard.pipeline.config.config import ALL_NODES

    return ALL_NODES


@_quiet
def complete_pipeline(context: typer.Context, incomplete: str) -> Sequence[str]:
    """Offer the pipelines of the workspace."""
    from regard.pipeline.workspace import Workspace

    return Workspace.from_environment().pipeline_names()


@_quiet
def complete_run(context: typer.Context, incomplete: str) -> Sequence[str]:
    """Offer pipelines, which stand for their newest run, and the ids of all runs."""
    from regard.pipeline.runs import store
    from regard.pipeline.workspace import Workspace

    workspace = Workspace.from_environment()
    ids = [record.id for record in store.listing(workspace, None)]
    return [*workspace.pipeline_names(), *ids]


@_quiet
def complete_model(context: typer.Context, incomplete: str) -> Sequence[str]:
    """Offer the models of the registry."""
    return _registry(context).names()


@_quiet
def complete_version(context: typer.Context, incomplete: str) -> Sequence[str]:
    """Offer the models of the registry and their versions, the newest first."""
    registry = _registry(context)
    return [
        text
        for name in registry.names()
        for text in (name, *(f"{name}@{version}" for version in registry.versions(name)[::-1]))
    ]


@_quiet
def complete_number(context: typer.Context, incomplete: str) -> Sequence[str]:
    """Offer the versions of the model that was given, the newest first."""
    return [str(version) for version in _registry(context).versions(context.params["name"])[::-1]]


@_quiet
def complete_key(context: typer.Context, incomplete: str) -> Sequence[str]:
    """Offer the keys of the configuration of the file's task, for ``--set KEY=VALUE``."""
    from regard.models.settings.annotations import sections_of
    from regard.pipeline.config.config import DEFAULT_TASK, config_class

    match = re.search(r"^task:\s*(\w+)", _config_text(context), re.MULTILINE)
    sections = sections_of(config_class(match[1] if match else DEFAULT_TASK))
    keys = {(*path, name) for path, model in sections for name in model.model_fields}
    return [f"{'.'.join(map(str, key))}=" for key in sorted(keys)]


def _config_text(context: typer.Context) -> str:
    """Return the first configuration of the command line; empty without one."""
    arguments = [context.params.get("config"), *(context.params.get("configs") or ())]
    arguments += context.args  # what was not parsed, because the option has no value yet
    paths = [Path(path) for path in arguments if path is not None]
    return next((path.read_text(encoding="utf-8") for path in paths if path.is_file()), "")


def _registry(context: typer.Context) -> Any:
    """Return the registry of the option ``--registry``, or that of the workspace."""
    from regard.components.registry.store import Registry
    from regard.pipeline.workspace import Workspace

    return Registry(context.params.get("registry") or Workspace.from_environment().registry)
