"""``regard lineage``: where a served model came from, back to the data."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.commands import terminal


def lineage(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="NAME or NAME@VERSION in the registry, or a version's folder.",
            show_default=False,
        ),
    ],
    as_json: terminal.JsonOption = False,
    registry: terminal.RegistryOption = None,
) -> None:
    """Tell where a pushed model came from: its run, each node's work, its data.

    The executions and artifacts are those of ML Metadata; what the run took
    from the cache is told as the older work that it was. Then follow the
    versions that this one and its predecessors were compared with, and at the
    end what could not be found out.

    [bold]Examples[/bold]

      regard lineage quickstart

      regard lineage quickstart@2 --json
    """
    from components.registry import Registry
    from pipeline.commands import lineage_tree
    from pipeline.lineage import trace
    from pipeline.workspace import Workspace

    workspace = Workspace.from_environment()
    version = Registry(registry or workspace.registry).resolve(model)
    found = trace(version, workspace)
    if as_json:
        terminal.print_json(found)
        return
    lineage_tree.show(found, terminal.out())
