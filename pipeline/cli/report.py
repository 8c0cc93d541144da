"""``regard report``: one HTML page about a run."""

from pathlib import Path
from typing import Annotated

from regard.pipeline.cli import terminal
from regard.pipeline.cli.completion import complete_run
from regard.pipeline.cli.options import JsonOption, argument, flag, option
from regard.pipeline.lineage.run_report import write_report
from regard.pipeline.runs import store
from regard.pipeline.workspace import Workspace


def report(
    run: Annotated[
        str,
        argument(
            "RUN",
            "Run id, pipeline name (its newest run), or NAME@VERSION.",
            autocompletion=complete_run,
        ),
    ],
    output: Annotated[Path | None, option("--output -o", "FILE", "File of the page.")] = None,
    show: Annotated[bool, flag("--open", "Open the page in a browser.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a report of a run: data, training, scores, examples and attention.

    The report is a single HTML file without external resources. Without --output it is written to
    the folder of the run.

    [bold]Examples[/bold]

      regard report quickstart --open

      regard report quickstart@2 -o report.html
    """
    stored_run = store.find(Workspace.from_environment(), run)
    path = write_report(stored_run, output)
    if as_json:
        terminal.print_json({"run": stored_run.full_id, "file": str(path)})
    else:
        terminal.print_lines(str(path))
    if show:
        terminal.open_page(path.as_uri())
