"""``regard report``: one HTML page about a run."""

import webbrowser
from pathlib import Path
from typing import Annotated

from regard.core.errors import UserError
from regard.core.files import is_writable
from regard.core.native_output import silence_output
from regard.pipeline.cli import terminal
from regard.pipeline.cli.options import argument, flag, option
from regard.pipeline.lineage import run_report
from regard.pipeline.runs import store
from regard.pipeline.workspace import Workspace


def report(
    run: Annotated[
        str, argument("RUN", "Run id, pipeline name (its newest run), or NAME@VERSION.")
    ],
    output: Annotated[Path | None, option("--output -o", "FILE", "File of the page.")] = None,
    show: Annotated[bool, flag("--open", "Open the page in a browser.")] = False,
) -> None:
    """Write a report of a run: data, training, scores, examples and attention.

    The report is a single HTML file without external resources. Without --output it is written to
    the folder of the run.

    [bold]Examples[/bold]

      regard report quickstart --open

      regard report quickstart@2 -o report.html
    """
    stored_run = store.find(Workspace.from_environment(), run)
    path = (output or stored_run.directory / store.REPORT).absolute()
    _check_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with silence_output():
        run_report.write_report(stored_run, path)
    terminal.print_lines(str(path))
    if show and not webbrowser.open(path.as_uri()):
        terminal.err().print("No browser was found. Open the file above in one.")


def _check_path(path: Path) -> None:
    """Raise a `UserError` if the page cannot be written."""
    if path.is_dir():
        raise UserError("The path is a folder.", str(path), "Give a file, such as report.html.")
    if not is_writable(path.parent):
        raise UserError("The folder is not writable.", str(path.parent), "Choose another folder.")
