"""``regard compare``: train several models on the same data and compare them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from regard.pipeline.cli import error_records, terminal
from regard.pipeline.cli.options import (
    JsonOption,
    QuietOption,
    SetOption,
    VerboseOption,
    argument,
    option,
)
from regard.pipeline.cli.rendering.live import TerminalDisplay
from regard.pipeline.compare import table
from regard.pipeline.compare.folder import ComparisonFolder
from regard.pipeline.compare.jobs import ComparisonOutcome
from regard.pipeline.compare.matrix import read_comparison
from regard.pipeline.compare.results import ComparisonResults
from regard.pipeline.compare.run import run_comparison
from regard.pipeline.config.changes import OPTION
from regard.pipeline.workspace import Workspace

_FAILED = 1
_INTERRUPTED = 130


def compare(
    configs: Annotated[
        list[Path], argument("CONFIG", "Configurations, or one file with name, base and models.")
    ],
    name: Annotated[
        str | None, option("--name", "NAME", "Name of the comparison.", "that in the file")
    ] = None,
    jobs: Annotated[
        int, option("--jobs", "N", "Models to train at a time; they share cores.", min=1)
    ] = 1,
    only: Annotated[
        list[str] | None,
        option("--only", "LABEL", "Train only these models, for example --only A,B."),
    ] = None,
    values: SetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Train several models on the same data, and compare them in a table and two plots.

    Each model is a pipeline, NAME-LABEL, that runs up to its evaluation. Finished
    steps are cached: to resume after a failure or Ctrl-C, run the same command again.
    Results are written to $REGARD_HOME/compare/NAME after each model.

    [bold]Examples[/bold]

      regard compare configs/compare/multi30k-en-de.yaml

      regard compare small.yaml large.yaml --name sizes --jobs 2

    [bold]Exit status[/bold]: 0 success; 1 a model failed; 2 invalid input;
    130 interrupted.
    """
    workspace = Workspace.from_environment()
    comparison = read_comparison(configs, workspace, name, values or ())
    command = ["regard", "compare", *map(str, configs)]
    if name:
        command += ["--name", name]
    for value in comparison.assignments:
        command += [OPTION, value]
    console = terminal.work_console(as_json, quiet)
    results, outcome = run_comparison(
        comparison,
        workspace,
        console,
        TerminalDisplay(console).message,
        only=only or (),
        jobs=jobs,
        command=shlex.join(command),
        verbose=verbose,
    )
    folder = ComparisonFolder.of(workspace, comparison.name)
    if as_json:
        terminal.print_json({**results.to_json(), **_errors(outcome, folder)})
    else:
        resume = list(command)
        for label in only or ():
            resume += ["--only", label]
        if jobs > 1:
            resume += ["--jobs", str(jobs)]
        if not quiet:
            _show_table(results)
        _show_end(folder, outcome, shlex.join(resume), console)
    if outcome.interrupted:
        raise typer.Exit(_INTERRUPTED)
    if outcome.failures:
        raise typer.Exit(_FAILED)


def _errors(outcome: ComparisonOutcome, folder: ComparisonFolder) -> dict[str, Any]:
    """Return the key ``errors`` of the output, unless all models were trained."""
    records = [
        error_records.record(
            error_records.STEP_FAILED,
            f"{label} failed: {reason}",
            remedy=f"See {folder.log(label)}.",
        )
        for label, reason in outcome.failures.items()
    ]
    if outcome.interrupted:
        records.append(error_records.record(error_records.INTERRUPTED, "Interrupted."))
    return {"errors": records} if records else {}


def _show_table(results: ComparisonResults) -> None:
    out = terminal.out()
    out.print()
    headings, *rows = map(_mark_best, table.cells(results))
    terminal.print_table(headings, rows, out, wrap_cells=0)
    out.print()
    for note in table.notes(results.models):
        terminal.print_text(out, (note.replace("`", ""), "dim"))


def _show_end(
    folder: ComparisonFolder, outcome: ComparisonOutcome, command: str, console: Console
) -> None:
    if outcome.failures or outcome.interrupted:
        console = terminal.failure_console(console)
    for label, reason in outcome.failures.items():
        terminal.print_text(console, (f"{label} failed: ", "bold red"), (reason, "red"))
        terminal.print_text(console, f"  log     {folder.log(label)}")
    terminal.print_text(console, f"results  {folder.root}")
    if outcome.failures or outcome.interrupted:
        terminal.print_text(console, f"resume   {command}")


def _mark_best(cells: Sequence[str]) -> list[str]:
    """Return a row of the table with one asterisk around a score that Markdown prints in bold."""
    return [cell.replace("**", "*") for cell in cells]
