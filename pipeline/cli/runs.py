"""``regard runs``: list runs."""

from typing import Annotated

from regard.pipeline.cli import terminal
from regard.pipeline.cli.completion import complete_pipeline
from regard.pipeline.cli.options import JsonOption, argument, option
from regard.pipeline.cli.rendering import run_tables
from regard.pipeline.runs import store
from regard.pipeline.workspace import Workspace


def runs(
    name: Annotated[
        str | None, argument("NAME", "Pipeline name.", autocompletion=complete_pipeline)
    ] = None,
    limit: Annotated[
        int | None, option("--limit", "N", "Maximum number of runs.", "all", min=1)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List runs, newest first.

    VERSION is the published version; PARENT is the production version that the model
    was compared with.

    [bold]Examples[/bold]

      regard runs

      regard runs quickstart --limit 5
    """
    workspace = Workspace.from_environment()
    if name is not None:
        terminal.check_name(name, workspace.pipeline_names(), "pipeline", str(workspace.pipelines))
    records = store.listing(workspace, name)[:limit]
    if as_json:
        terminal.print_json([record.to_dict() for record in records])
    elif not records:
        terminal.print_lines(f"No runs in {workspace.pipelines}.")
    else:
        run_tables.print_listing(records, terminal.out())
