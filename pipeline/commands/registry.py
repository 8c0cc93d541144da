"""``regard registry``: what models there are, and which stay."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.commands import terminal

if TYPE_CHECKING:
    from components.registry import Registry

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
        str | None, typer.Argument(metavar="NAME", help="Only this model.", show_default=False)
    ] = None,
    as_json: terminal.JsonOption = False,
    registry: terminal.RegistryOption = None,
) -> None:
    """List the versions of all models, the newest first.

    The newest version is [bold]live[/bold]: servers take it, and the next run
    compares with it. One that production was rolled back from is
    [bold]withdrawn[/bold]: a run that makes the same model again does not push it.

    [bold]Examples[/bold]

      regard registry list

      regard registry list quickstart --json
    """
    from components.registry.overview import entries
    from pipeline.commands import registry_tables

    found = _registry(registry)
    listed = entries(found, name)
    if as_json:
        terminal.print_json(listed)
    elif not listed:
        terminal.out().print(f"No models in {found.root} yet.", soft_wrap=True)
    else:
        registry_tables.print_listing(listed, terminal.out())


@app.command()
def show(
    model: Annotated[
        str,
        typer.Argument(
            metavar="NAME[@VERSION]",
            help="The model; without a version the live one.",
            show_default=False,
        ),
    ],
    as_json: terminal.JsonOption = False,
    registry: terminal.RegistryOption = None,
) -> None:
    """Show what is known about a version: scores, data with its spans, what it replaced.

    [bold]Example[/bold]

      regard registry show quickstart@2
    """
    from components.registry.overview import entry
    from pipeline.commands import registry_tables

    found = _registry(registry)
    name, _, version = model.partition("@")
    told = entry(found, name, found.number(name, version))
    if as_json:
        terminal.print_json(told)
    else:
        registry_tables.print_version(told, terminal.out())


@app.command()
def pin(model: VersionArgument, registry: terminal.RegistryOption = None) -> None:
    """Keep a version: `regard registry prune` never removes it.

    [bold]Example[/bold]

      regard registry pin quickstart@2
    """
    from components.registry.pins import pin as pin_version

    found, name, number = _one(model, registry)
    state = "is pinned" if pin_version(found, name, number) else "was pinned already"
    terminal.out().print(f"{name}@{number} {state}.")


@app.command()
def unpin(model: VersionArgument, registry: terminal.RegistryOption = None) -> None:
    """Take the pin of a version away.

    [bold]Example[/bold]

      regard registry unpin quickstart@2
    """
    from components.registry.pins import unpin as unpin_version

    found, name, number = _one(model, registry)
    state = "is no longer pinned" if unpin_version(found, name, number) else "was not pinned"
    terminal.out().print(f"{name}@{number} {state}.")


@app.command()
def prune(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The model.", show_default=False)],
    keep: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="How many of the newest versions stay, the live one among them.",
            show_default=False,
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what would be removed.")
    ] = False,
    model_config: Annotated[
        Path | None,
        typer.Option(
            "--model-config-file",
            metavar="FILE",
            help="What a model server is told to serve stays, too.",
            show_default=False,
        ),
    ] = None,
    as_json: terminal.JsonOption = False,
    registry: terminal.RegistryOption = None,
) -> None:
    """Remove old versions of a model.

    Never the live one, a pinned one, one that `regard serve` on this machine has
    loaded, or one that a run which goes on compares with or starts from. What TensorFlow
    Serving holds besides the newest is known only from --model-config-file.

    [bold]Examples[/bold]

      regard registry prune quickstart --keep 5 --dry-run

      regard registry prune quickstart --keep 5
    """
    from components.registry import pruning
    from components.registry.holding import wanted_by
    from pipeline.commands import registry_tables
    from pipeline.runs import needed_versions
    from pipeline.workspace import Workspace

    found = _registry(registry)
    found.number(name)  # refuses a name that is not there
    held = needed_versions(Workspace.from_environment(), found.root / name)
    if model_config is not None:
        held |= wanted_by(model_config, found, name)
    verdicts = pruning.prune(found, name, keep, held, dry_run)
    if as_json:
        removed = [{"name": name, **dataclasses.asdict(one)} for one in verdicts]
        terminal.print_json({"dry_run": dry_run, "versions": removed})
    else:
        registry_tables.print_pruned(name, verdicts, dry_run, terminal.out())


def rollback(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The model.", show_default=False)],
    version: Annotated[
        int | None,
        typer.Argument(
            metavar="VERSION",
            help="The version to go back to.",
            show_default="the one before the live one that was not itself rolled back from",
        ),
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Is kept with the version.", show_default=False),
    ] = None,
    as_json: terminal.JsonOption = False,
    registry: terminal.RegistryOption = None,
) -> None:
    """Put an earlier version of a model back into production.

    Its model is published again under the next number, so that TensorFlow
    Serving and `regard serve` change over to it without a pause, and the next
    run compares with it. The version that was live stays in the registry and is
    withdrawn: a run that makes the same model again does not push it. To bring
    it back, name it.

    [bold]Examples[/bold]

      regard rollback quickstart

      regard rollback quickstart 2 --reason "wrong amounts in French"
    """
    from components.registry import rollback as work

    done = work.rollback(_registry(registry), name, version, reason)
    if as_json:
        terminal.print_json({"name": name, **dataclasses.asdict(done)})
        return
    lines = (
        f"{name}@{done.version} is live: the model of {name}@{done.of}.",
        f"{name}@{done.before} is withdrawn; "
        f"`regard rollback {name} {done.before}` brings it back.",
    )
    for line in lines:
        terminal.out().print(line, soft_wrap=True)


def _registry(given: Path | None) -> Registry:
    from components.registry import Registry
    from pipeline.workspace import Workspace

    return Registry(given or Workspace.from_environment().registry)


def _one(model: str, given: Path | None) -> tuple[Registry, str, int]:
    """The registry, and the name and number of the one version that is meant."""
    from components.errors import UserError

    registry = _registry(given)
    name, _, version = model.partition("@")
    live = registry.number(name)
    if not version:  # the newest one may be another before the command is typed
        raise UserError(
            "no version is named", where=model, remedy=f"The live one is {name}@{live}."
        )
    return registry, name, registry.number(name, version)
