"""The command ``regard lineage``."""

from __future__ import annotations

from typing import Annotated

import typer

from regard.pipeline.cli import terminal


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
    """Show where a model came from: its run, the executions of each node, and its data.

    Executions and artifacts come from ML Metadata. For steps that the run took
    from the cache, the original execution is shown. The earlier versions that
    this one was compared with follow, and then what could not be found.

    [bold]Examples[/bold]

      regard lineage quickstart

      regard lineage quickstart@2 --json
    """
    from regard.components.registry import Registry
    from regard.pipeline.cli.rendering import lineage_tree
    from regard.pipeline.lineage import trace
    from regard.pipeline.workspace import Workspace

    workspace = Workspace.from_environment()
    version = Registry(registry or workspace.registry).resolve(model)
    result = trace(version, workspace)
    if as_json:
        terminal.print_json(result.to_dict())
        return
    lineage_tree.show(result, terminal.out())
