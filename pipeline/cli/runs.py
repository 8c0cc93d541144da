"""``regard runs``: list runs; ``regard runs diff``: compare two of them."""

from typing import Annotated, Any

from regard.pipeline.cli import terminal
from regard.pipeline.cli.options import App, Group, JsonOption, argument, option
from regard.pipeline.workspace import Workspace

_LIST = "list"


class RunsGroup(Group):
    """A group with the default command ``list``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert ``list`` before a pipeline's name or options, or if there are no arguments.

        Two arguments without a command are left to the group, which suggests a command.
        """
        known = {*self.commands, *ctx.help_option_names}
        words = [word for word in args[:2] if not word.startswith("-")]
        if not args or (args[0] not in known and len(words) < 2):
            args = [_LIST, *args]
        return super().parse_args(ctx, args)


app = App(
    cls=RunsGroup,
    help="List runs, or compare two of them.\n\n"
    "[bold]Examples[/bold]\n\n"
    "  regard runs\n\n"
    "  regard runs quickstart --limit 5\n\n"
    "  regard runs diff quickstart@1 quickstart@2",
    subcommand_metavar="[NAME] | diff A B",
)

_RUN_HELP = (
    "Run id or a unique prefix, NAME (its newest run), NAME@VERSION (the run that published it), "
    "NAME/ID, or the folder of a run."
)


@app.command(_LIST)
def list_runs(
    name: Annotated[str | None, argument("NAME", "Pipeline name.")] = None,
    limit: Annotated[
        int | None, option("--limit", "N", "Maximum number of runs.", "all", min=1)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List runs, newest first (the default command).

    VERSION is the published version; PARENT is the production version that the model
    was compared with.

    [bold]Examples[/bold]

      regard runs

      regard runs quickstart --limit 5
    """
    from regard.pipeline import run_store
    from regard.pipeline.cli.rendering import run_tables

    workspace = Workspace.from_environment()
    if name is not None:
        terminal.check_name(name, workspace.pipeline_names(), "pipeline", str(workspace.pipelines))
    records = run_store.listing(workspace, name)[:limit]
    if as_json:
        terminal.print_json(records)
    elif not records:
        terminal.print_lines(f"No runs in {workspace.pipelines}.")
    else:
        run_tables.print_listing(records, terminal.out())


@app.command("diff")
def diff(
    a: Annotated[str, argument("A", _RUN_HELP)],
    b: Annotated[str, argument("B", "The run to compare with.")],
    as_json: JsonOption = False,
) -> None:
    """Compare two runs.

    Shows differences in configuration, data, scores with confidence intervals, time
    and memory of each node, code, libraries and machine.

    [bold]Examples[/bold]

      regard runs diff 20261120-101643 20261121-093012

      regard runs diff quickstart@1 quickstart
    """
    from regard.pipeline import run_store
    from regard.pipeline.cli.rendering import run_tables
    from regard.pipeline.run_diff import diff_runs

    workspace = Workspace.from_environment()
    result = diff_runs(run_store.find(workspace, a), run_store.find(workspace, b))
    if as_json:
        terminal.print_json(result)
    else:
        run_tables.print_diff(result, terminal.out())
