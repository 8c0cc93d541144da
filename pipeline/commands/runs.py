"""``regard runs``: what has run and how it went; ``regard runs diff``: two of them side by side."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pipeline.commands import terminal

_LIST = "list"


class RunsGroup(TyperGroup):
    """A group of which ``list`` is what is meant where no command is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts ``list`` before a pipeline's name, before its options, and where there is nothing.

        Two words that begin with no command are left to the group, which knows what is close.
        """
        known = {*self.commands, *ctx.help_option_names}
        words = [word for word in args[:2] if not word.startswith("-")]
        if not args or (args[0] not in known and len(words) < 2):
            args = [_LIST, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=RunsGroup,
    help="List what has run, or lay two runs side by side.\n\n"
    "[bold]Examples[/bold]\n\n"
    "  regard runs\n\n"
    "  regard runs quickstart --limit 5\n\n"
    "  regard runs diff quickstart@1 quickstart@2",
    subcommand_metavar="[NAME] | diff A B",
    rich_markup_mode="rich",
)

_RUN_HELP = (
    "A run's id or its beginning, NAME (its newest run), NAME@VERSION (the run that pushed it), "
    "NAME/ID, or a run's folder."
)


@app.command(_LIST)
def list_runs(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Only this pipeline.", show_default=False),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Only the newest N.", show_default="all"),
    ] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """List the runs, the newest first: the same as without a command.

    The version is the one that the run pushed, or found pushed already; the
    parent is the one that its model was compared with.

    [bold]Examples[/bold]

      regard runs

      regard runs quickstart --limit 5
    """
    from pipeline import runs
    from pipeline.commands import run_tables
    from pipeline.workspace import Workspace

    workspace = Workspace.from_environment()
    if name is not None:
        terminal.check_name(name, workspace.pipeline_names(), "pipeline", str(workspace.pipelines))
    records = runs.listing(workspace, name)[:limit]
    if as_json:
        terminal.print_json(records)
    elif not records:
        terminal.out().print(f"No runs in {workspace.pipelines} yet.", soft_wrap=True)
    else:
        run_tables.print_listing(records, terminal.out())


@app.command("diff")
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help=_RUN_HELP, show_default=False)],
    b: Annotated[str, typer.Argument(metavar="B", help="Another run.", show_default=False)],
    as_json: terminal.JsonOption = False,
) -> None:
    """Lay two runs side by side: what differs in what went in and came out.

    Configuration, data, scores with their intervals, time and memory of each
    node, code, libraries and machine.

    [bold]Examples[/bold]

      regard runs diff 20261120-101643 20261121-093012

      regard runs diff quickstart@1 quickstart
    """
    from pipeline import runs
    from pipeline.commands import run_tables
    from pipeline.difference import difference
    from pipeline.workspace import Workspace

    workspace = Workspace.from_environment()
    found = difference(runs.find(workspace, a), runs.find(workspace, b))
    if as_json:
        terminal.print_json(found)
    else:
        run_tables.print_difference(found, terminal.out())
