"""``regard compare``: several models on the same data, one table, two pictures."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.commands import terminal

if TYPE_CHECKING:
    from pipeline.compare.members import Comparison
    from pipeline.compare.report import Folder
    from pipeline.compare.running import Outcome

_FAILED, _INTERRUPTED = 1, 130
_PARTS = "Parts of it"


def compare(
    configs: Annotated[
        list[Path],
        typer.Argument(
            metavar="CONFIG",
            help="Pipelines' YAML files, or one file with a matrix: name, base, models.",
            show_default=False,
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The comparison's name.", show_default="the matrix's"),
    ] = None,
    jobs: Annotated[
        int, typer.Option(metavar="N", min=1, help="Models at once; they divide the cores.")
    ] = 1,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL",
            help="Run only this model; several: --only A,B.",
            rich_help_panel=_PARTS,
        ),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help="Leave alone what has been evaluated with this configuration, even if the data "
            "or Regard's code has changed since.",
            rich_help_panel=_PARTS,
        ),
    ] = False,
    status: Annotated[
        bool,
        typer.Option(
            "--status", help="Run nothing; say how far each model is.", rich_help_panel=_PARTS
        ),
    ] = False,
    table_only: Annotated[
        bool,
        typer.Option(
            "--table-only",
            help="Run nothing; write table and pictures anew.",
            rich_help_panel=_PARTS,
        ),
    ] = False,
    as_json: terminal.JsonOption = False,
) -> None:
    """Train several models on the same data, and compare them in a table and two pictures.

    Each model is a pipeline of its own, NAME-LABEL, run up to its evaluation.
    What is done is skipped and an interrupted training goes on, so the same
    command goes on after Ctrl-C. All results lie in
    $REGARD_HOME/compare/NAME, and are written after each model.

    [bold]Examples[/bold]

      regard compare configs/compare/multi30k-en-de.yaml

      regard compare small.yaml large.yaml --name sizes --jobs 2

      regard compare configs/compare/multi30k-en-de.yaml --status

    [bold]Exit status[/bold]: 0 all is done; 1 a model failed, the others are
    done; 2 something is wrong in a file; 130 interrupted.
    """
    from pipeline.compare import matrix, report, results, table
    from pipeline.compare.running import Outcome, Request, run
    from pipeline.inputs import data_section
    from pipeline.workspace import Workspace

    workspace = Workspace.from_environment()
    comparison = matrix.read(configs, workspace, name)
    labels = _chosen(only, comparison)
    folder = report.Folder.of(workspace, comparison.name)
    command = ["regard", "compare", *map(str, configs), *(["--name", name] if name else [])]
    request = Request(labels, jobs, keep, shlex.join(command))
    outcome = Outcome()
    if not (status or table_only):
        notes: list[str] = []
        # The same for all; looked for before any runs.
        data_section(comparison.members[0].config, notes)
        for note in notes:
            terminal.err().print(f"data: {note}", soft_wrap=True)
        outcome = run(comparison, request, workspace, terminal.err() if as_json else terminal.out())
    content = results.gather(comparison, workspace)
    if not status:
        report.write(content, folder, request.command)
    if as_json:
        terminal.print_json({**content, "directory": str(folder.root)})
    elif status:
        terminal.out().print("\n".join(table.status_lines(content)), soft_wrap=True)
    else:
        # The table's command is that of all models; what goes on is what was asked for.
        command += [word for label in only or () for word in ("--only", label)]
        command += [*(["--jobs", str(jobs)] if jobs > 1 else []), *(["--keep"] if keep else [])]
        _show(content, folder, outcome, shlex.join(command))
    if not outcome.undisturbed:
        raise typer.Exit(_INTERRUPTED)
    if outcome.failures:
        raise typer.Exit(_FAILED)


def _chosen(only: Sequence[str] | None, comparison: Comparison) -> list[str]:
    """The labels that ``--only`` names, in the file's order; all where it is not given."""
    if not only:
        return comparison.labels
    given = [label.strip() for text in only for label in text.split(",") if label.strip()]
    for label in given:
        terminal.check_name(label, comparison.labels, "model", "--only")
    return [label for label in comparison.labels if label in given]


def _show(content: dict[str, Any], folder: Folder, outcome: Outcome, command: str) -> None:
    from rich.text import Text

    from pipeline.compare import table

    out = terminal.out()
    out.print()
    for line in table.lines(content):
        out.print(line, soft_wrap=True)
    out.print()
    for note in table.notes(content["models"]):
        out.print(Text(note.replace("`", ""), "dim"), soft_wrap=True)
    for label, reason in outcome.failures.items():
        out.print(Text(f"{label} failed: ", "bold red").append(Text(reason, "red")), soft_wrap=True)
        out.print(Text(f"  log     {folder.log(label)}"), soft_wrap=True)
    out.print(Text(f"results  {folder.root}"), soft_wrap=True)
    if outcome.failures or not outcome.undisturbed:
        out.print(Text(f"go on    {command}   (what is done is skipped)"), soft_wrap=True)
