"""The commands ``regard registry`` and ``regard rollback``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

from regard.components.registry import overview, prune
from regard.components.registry import rollback as registry_rollback
from regard.components.registry.store import Registry
from regard.core.errors import UserError
from regard.pipeline.cli import completion, terminal
from regard.pipeline.cli.options import (
    JsonOption,
    RegistryOption,
    argument,
    command_group,
    flag,
    option,
)
from regard.pipeline.cli.rendering import registry_tables
from regard.pipeline.runs.store import needed_versions
from regard.pipeline.workspace import Workspace

app = command_group("List, pin and prune the versions of models in the registry.")

NameArgument = Annotated[
    str, argument("NAME", "The model.", autocompletion=completion.complete_model)
]
VersionArgument = Annotated[
    str,
    argument("NAME@VERSION", "The version.", autocompletion=completion.complete_version),
]


@app.command("list")
def list_versions(
    name: Annotated[
        str | None,
        argument("NAME", "List only this model.", autocompletion=completion.complete_model),
    ] = None,
    as_json: JsonOption = False,
    registry: RegistryOption = None,
) -> None:
    """List the versions of all models, newest first.

    The newest version is [bold]live[/bold]: servers load it, and the next run
    compares with it. A version that production was rolled back from is
    [bold]withdrawn[/bold]: a run that makes the same model again does not push it.

    [bold]Examples[/bold]

      regard registry list

      regard registry list quickstart --json
    """
    opened = _registry(registry)
    entries = overview.list_versions(opened, name)
    if as_json:
        terminal.print_json([entry.to_dict() for entry in entries])
    elif not entries:
        terminal.print_lines(f"No models in {opened.location()} yet.")
    else:
        registry_tables.print_versions(entries, terminal.out())


@app.command()
def pin(
    model: VersionArgument, as_json: JsonOption = False, registry: RegistryOption = None
) -> None:
    """Pin a version, so that `regard registry prune` keeps it.

    [bold]Example[/bold]

      regard registry pin quickstart@2
    """
    opened, name, number = _parse_version(model, registry)
    state = "is pinned" if prune.pin(opened, name, number) else "was pinned already"
    _print_pin(name, number, state, True, as_json)


@app.command()
def unpin(
    model: VersionArgument, as_json: JsonOption = False, registry: RegistryOption = None
) -> None:
    """Remove the pin of a version.

    [bold]Example[/bold]

      regard registry unpin quickstart@2
    """
    opened, name, number = _parse_version(model, registry)
    state = "is no longer pinned" if prune.unpin(opened, name, number) else "was not pinned"
    _print_pin(name, number, state, False, as_json)


@app.command("prune")
def prune_versions(
    name: NameArgument,
    keep: Annotated[
        int,
        option("--keep", "N", "Number of newest versions to keep, including the live one.", min=1),
    ],
    dry_run: Annotated[bool, flag("--dry-run", "Only show what would be removed.")] = False,
    withdrawn: Annotated[
        bool, flag("--withdrawn", "Also remove versions that production was rolled back from.")
    ] = False,
    yes: Annotated[bool, flag("--yes", "Remove without asking.")] = False,
    as_json: JsonOption = False,
    registry: RegistryOption = None,
) -> None:
    """Remove old versions of a model, after a question.

    The live version, pinned versions, versions that `regard serve` has loaded, and
    versions that an active run compares with or starts from are always kept. Servers
    on other hosts need a file system with locks across hosts. Pin older versions that
    TensorFlow Serving serves: regard registry pin NAME@VERSION.

    [bold]Examples[/bold]

      regard registry prune quickstart --keep 5 --dry-run

      regard registry prune quickstart --keep 5
    """
    opened = _registry(registry)
    opened.number(name)  # raises an error for unknown names
    needed = needed_versions(Workspace.from_environment(), opened.root / name)
    results = prune.prune(opened, name, keep, needed, True, withdrawn)
    if not dry_run and any(result.kept_because is None for result in results):
        if not yes:
            registry_tables.print_prune_results(name, results, True, terminal.err())
            terminal.confirm("Remove these versions?")
        results = prune.prune(opened, name, keep, needed, False, withdrawn)
    if as_json:
        versions = [{"name": name, **dataclasses.asdict(result)} for result in results]
        terminal.print_json({"dry_run": dry_run, "versions": versions})
    else:
        registry_tables.print_prune_results(name, results, dry_run, terminal.out())


def rollback(
    name: NameArgument,
    version: Annotated[
        int | None,
        argument(
            "VERSION",
            "The version to go back to.",
            "the newest earlier version that was not withdrawn",
            autocompletion=completion.complete_number,
        ),
    ] = None,
    reason: Annotated[str | None, option("--reason", "TEXT", "Reason to record.")] = None,
    as_json: JsonOption = False,
    registry: RegistryOption = None,
) -> None:
    """Put an earlier version of a model back into production.

    The model is published again under the next number, so that TensorFlow Serving
    and `regard serve` switch to it without downtime, and the next run compares
    with it. The replaced version stays in the registry and is withdrawn: a run
    that makes the same model again does not push it. To restore it, roll back to
    it by its number.

    [bold]Examples[/bold]

      regard rollback quickstart

      regard rollback quickstart 2 --reason "wrong amounts in French"
    """
    result = registry_rollback.rollback(_registry(registry), name, version, reason)
    if as_json:
        keys = ("version", "rollback_of", "rolled_back_from")
        terminal.print_json({"name": name, **{key: getattr(result, key) for key in keys}})
        return
    old = result.rolled_back_from
    terminal.print_lines(
        f"{name}@{result.version} is live, with the model of {name}@{result.rollback_of}.",
        f"{name}@{old} is withdrawn. To restore it: regard rollback {name} {old}",
    )


def _print_pin(name: str, version: int, state: str, pinned: bool, as_json: bool) -> None:
    if as_json:
        terminal.print_json({"name": name, "version": version, "pinned": pinned})
    else:
        terminal.print_lines(f"{name}@{version} {state}.")


def _registry(root: Path | None) -> Registry:
    return Registry(root or Workspace.from_environment().registry)


def _parse_version(model: str, root: Path | None) -> tuple[Registry, str, int]:
    """Return the registry, the name and the number; the number must be given."""
    registry = _registry(root)
    name, _, version = model.partition("@")
    live = registry.number(name)
    if not version:  # a default could change while the user types
        raise UserError("The version is missing.", model, f"The live version is {name}@{live}.")
    return registry, name, registry.number(name, version)
