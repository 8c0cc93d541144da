"""``regard runs``: what has run, and how it went."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pipeline.commands import terminal


def list_runs(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Only this pipeline.", show_default=False),
    ] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """List the runs of all pipelines, the newest first, with their scores.

    [bold]Example[/bold]

      regard runs quickstart
    """
    from pipeline import runs
    from pipeline.workspace import Workspace

    workspace = Workspace.from_environment()
    if name is not None:
        terminal.check_name(name, workspace.pipeline_names(), "pipeline", str(workspace.pipelines))
    records = runs.listing(workspace, name)
    if as_json:
        terminal.print_json(records)
        return
    if not records:
        terminal.out().print(f"No runs in {workspace.pipelines} yet.", soft_wrap=True)
        return
    terminal.out().print(_runs_table(records))


def _runs_table(records: list[dict[str, Any]]) -> Any:
    from rich.table import Table
    from rich.text import Text

    from pipeline.live import duration

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", "run", "status", "scores", "version", "time"):
        table.add_column(heading, no_wrap=heading in ("run", "status", "time"), overflow="fold")
    for record in records:
        scores = ", ".join(
            f"{score.get('label', score['name'])} "
            f"{score['value']:.{2 if score.get('scale', 100.0) >= 10 else 4}f}"
            for score in record.get("scores") or []
        )
        cells = [record["name"], record["id"], record.get("status", "?"), scores]
        cells += [str(record.get("pushed_version") or ""), duration(record.get("seconds"))]
        table.add_row(*(Text(cell) for cell in cells))
    return table
