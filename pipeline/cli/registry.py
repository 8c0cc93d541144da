"""The commands ``regard registry`` and ``regard rollback``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.pipeline.cli import terminal

if TYPE_CHECKING:
    from regard.components.registry import Registry

app = typer.Typer(
    help="List, pin and prune the versions of models in the registry.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

VersionArgument = Annotated[
    str, typer.Argument(metavar="NAME@VERSION", help="The version.", show_default=False)
]


@app.command("list")
def list_versions(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="List only this model.", show_default=False)
    ] = None,
    as_json: terminal.JsonOption = False,
    registry: terminal.RegistryOption = None,
) -> None:
    """List the versions of all models, newest first.

    The newest version is [bold]live[/bold]: servers load it, and the next run
    compares with it. A version that production was rolled back from is
    [bold]withdrawn[/bold]: a run that makes the same model again does not push it.

    [bold]Examples[/bold]

      regard registry list

      regard registry list quickstart --json
    """
    from regard.components.registry import overview
    from regard.pipeline.cli.rendering import registry_tables

    opened = _registry(registry)
    entries = overview.list_versions(opened, name)
    if as_json:
        terminal.print_json([entry.to_dict() for entry in entries])
    elif not entries:
        terminal.out().print(f"No models in {opened.root} yet.", soft_wrap=True)
    else:
        registry_tables.print_versions(entries, terminal.out())


@app.command()
def show(
    model: Annotated[
        str,
        typer.Argument(
            metavar="NAME[@VERSION]",
            help="The model, by default its live version.",
            show_default=False,
        ),
    ],
    as_json: terminal.JsonOption = False,
    registry: terminal.RegistryOption = None,
) -> None:
    """Show one version: its scores, data, spans, and the version it replaced.

    [bold]Example[/bold]

      regard registry show quickstart@2
    """
    from regard.components.registry.overview import find_version
    from regard.pipeline.cli.rendering import registry_tables

    opened = _registry(registry)
    name, _, version = model.partition("@")
    entry = find_version(opened, name, opened.number(name, version))
    if as_json:
        terminal.print_json(entry.to_dict())
    else:
        registry_tables.print_version(entry, terminal.out())


@app.command()
def pin(model: VersionArgument, registry: terminal.RegistryOption = None) -> None:
    """Pin a version, so that `regard registry prune` keeps it.

    [bold]Example[/bold]

      regard registry pin quickstart@2
    """
    from regard.components.registry import prune

    opened, name, number = _parse_version(model, registry)
    state = "is pinned" if prune.pin(opened, name, number) else "was pinned already"
    terminal.out().print(f"{name}@{number} {state}.")


@app.command()
def unpin(model: VersionArgument, registry: terminal.RegistryOption = None) -> None:
    """Remove the pin of a version.

    [bold]Example[/bold]

      regard registry unpin quickstart@2
    """
    from regard.components.registry import prune

    opened, name, number = _parse_version(model, registry)
    state = "is no longer pinned" if prune.unpin(opened, name, number) else "was not pinned"
    terminal.out().print(f"{name}@{number} {state}.")


@app.command("prune")
def prune_versions(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The model.", show_default=False)],
    keep: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of newest versions to keep, including the live one.",
            show_default=False,
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be removed.")
    ] = False,
    model_config: Annotated[
        Path | None,
        typer.Option(
            "--model-config-file",
            metavar="FILE",
            help="Also keep the versions that this model server configuration serves.",
            show_default=False,
        ),
    ] = None,
    as_json: terminal.JsonOption = False,
    registry: terminal.RegistryOption = None,
) -> None:
    """Remove old versions of a model.

    The live version, pinned versions, versions that `regard serve` has loaded on
    this machine, and versions that an active run compares with or starts from are
    always kept. Pass --model-config-file to keep the older versions that
    TensorFlow Serving serves.

    [bold]Examples[/bold]

      regard registry prune quickstart --keep 5 --dry-run

      regard registry prune quickstart --keep 5
    """
    from regard.components.registry import prune
    from regard.pipeline.cli.rendering import registry_tables
    from regard.pipeline.run_store import needed_versions
    from regard.pipeline.workspace import Workspace

    opened = _registry(registry)
    opened.number(name)  # raises an error for unknown names
    needed = needed_versions(Workspace.from_environment(), opened.root / name)
    if model_config is not None:
        needed |= prune.served_versions(model_config, opened, name)
    results = prune.prune(opened, name, keep, needed, dry_run)
    if as_json:
        versions = [{"name": name, **dataclasses.asdict(result)} for result in results]
        terminal.print_json({"dry_run": dry_run, "versions": versions})
    else:
        registry_tables.print_prune_results(name, results, dry_run, terminal.out())


def rollback(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The model.", show_default=False)],
    version: Annotated[
        int | None,
        typer.Argument(
            metavar="VERSION",
            help="The version to go back to.",
            show_default="the newest earlier version that was not withdrawn",
        ),
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Reason to record.", show_default=False),
    ] = None,
    as_json: terminal.JsonOption = False,
    registry: terminal.RegistryOption = None,
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
    from regard.components.registry import rollback as registry_rollback

    result = registry_rollback.rollback(_registry(registry), name, version, reason)
    if as_json:
        terminal.print_json({"name": name, **dataclasses.asdict(result)})
        return
    old = result.rolled_back_from
    for line in (
        f"{name}@{result.version} is live, with the model of {name}@{result.rollback_of}.",
        f"{name}@{old} is withdrawn. To restore it: regard rollback {name} {old}",
    ):
        terminal.out().print(line, soft_wrap=True)


def _registry(root: Path | None) -> Registry:
    from regard.components.registry import Registry
    from regard.pipeline.workspace import Workspace

    return Registry(root or Workspace.from_environment().registry)


def _parse_version(model: str, root: Path | None) -> tuple[Registry, str, int]:
    """Return the registry, the name and the number; the number must be given."""
    from regard.components.common.errors import UserError

    registry = _registry(root)
    name, _, version = model.partition("@")
    live = registry.number(name)
    if not version:  # a default could change while the user types
        raise UserError(
            "the version is missing", where=model, remedy=f"The live version is {name}@{live}."
        )
    return registry, name, registry.number(name, version)
