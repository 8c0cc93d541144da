"""``regard compare``: train several models on the same data and compare them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from regard.pipeline.cli import terminal
from regard.pipeline.cli.options import JsonOption, argument, option
from regard.pipeline.compare import table
from regard.pipeline.compare.folder import ComparisonFolder
from regard.pipeline.compare.gather import gather
from regard.pipeline.compare.jobs import ComparisonOutcome, train_models
from regard.pipeline.compare.matrix import ModelComparison, read_comparison
from regard.pipeline.compare.results import ComparisonResults
from regard.pipeline.context import resolve_data
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
    as_json: JsonOption = False,
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
    comparison = read_comparison(configs, workspace, name)
    labels = _selected(only, comparison)
    folder = ComparisonFolder.of(workspace, comparison.name)
    command = ["regard", "compare", *map(str, configs)]
    if name:
        command += ["--name", name]

    def write() -> ComparisonResults:
        results = gather(comparison, workspace)
        folder.write(results, shlex.join(command))
        return results

    def write_after_model() -> None:
        try:
            write()
        # Must not stop the models that follow; the last call, at the end, raises it.
        except Exception as error:
            message = f"The results cannot be written: {type(error).__name__}: {error}"
            terminal.err().print(message, soft_wrap=True, markup=False)

    notes: list[str] = []
    resolve_data(comparison.members[0].config, notes)  # the data of all models is the same
    for note in notes:
        terminal.err().print(f"data: {note}", soft_wrap=True)
    console = terminal.err() if as_json else terminal.out()
    outcome = train_models(comparison, labels, jobs, workspace, console, write_after_model)
    results = write()
    if as_json:
        terminal.print_json({**results.to_json(), "directory": str(folder.root)})
    else:
        resume = list(command)
        for label in only or ():
            resume += ["--only", label]
        if jobs > 1:
            resume += ["--jobs", str(jobs)]
        _show(results, folder, outcome, shlex.join(resume))
    if outcome.interrupted:
        raise typer.Exit(_INTERRUPTED)
    if outcome.failures:
        raise typer.Exit(_FAILED)


def _selected(only: Sequence[str] | None, comparison: ModelComparison) -> list[str]:
    """Return the labels that ``--only`` selects, or all, in the order of the file."""
    if not only:
        return comparison.labels
    selected = [label.strip() for label in ",".join(only).split(",") if label.strip()]
    for label in selected:
        terminal.check_name(label, comparison.labels, "model", "--only")
    return [label for label in comparison.labels if label in selected]


def _show(
    results: ComparisonResults, folder: ComparisonFolder, outcome: ComparisonOutcome, command: str
) -> None:
    out = terminal.out()
    out.print()
    headings, *rows = map(_mark_best, table.cells(results))
    terminal.print_table(headings, rows, out, wrap_cells=0)
    out.print()
    for note in table.notes(results.models):
        terminal.print_text(out, (note.replace("`", ""), "dim"))
    for label, reason in outcome.failures.items():
        terminal.print_text(out, (f"{label} failed: ", "bold red"), (reason, "red"))
        terminal.print_text(out, f"  log     {folder.log(label)}")
    terminal.print_text(out, f"results  {folder.root}")
    if outcome.failures or outcome.interrupted:
        terminal.print_text(out, f"resume   {command}")


def _mark_best(cells: Sequence[str]) -> list[str]:
    """Return a row of the table with one asterisk around a score that Markdown prints in bold."""
    return [cell.replace("**", "*") for cell in cells]
