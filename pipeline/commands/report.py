"""``regard report``: one page about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.commands import terminal


def report(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="A run's id, the name of a pipeline for its newest run, or NAME@VERSION.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where the page goes."),
    ] = None,
    pictures: Annotated[
        Path | None,
        typer.Option(
            "--figures", metavar="FOLDER", help="Write every figure there too, as SVG and PNG."
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    as_json: terminal.JsonOption = False,
) -> None:
    """Write the page about a run: data, training, scores, examples, where the model looked.

    The page needs nothing else: no network, no other file. Without --output it lies in the run's
    folder.

    [bold]Examples[/bold]

      regard report quickstart --open

      regard report quickstart@2 -o report.html --figures figures/
    """
    from components.pictures import FONTS_REMEDY
    from pipeline import reporting, runs
    from pipeline.workspace import Workspace

    found = runs.find(Workspace.from_environment(), run)
    path = (output or found.directory / reporting.FILE).absolute()
    _check(path, pictures)
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = reporting.write(found, path)
    drawn, whole = reporting.write_figures(facts, pictures) if pictures else ([], True)
    if not whole:
        terminal.err().print(FONTS_REMEDY, soft_wrap=True)
    if as_json:
        terminal.print_json(
            {"run": found.id, "report": str(path), "figures": list(map(str, drawn))}
        )
    else:
        terminal.out().print(str(path), soft_wrap=True, highlight=False)
        if pictures:
            terminal.out().print(f"{len(drawn)} files in {pictures}", soft_wrap=True)
    if show:
        typer.launch(path.as_uri())


def _check(path: Path, pictures: Path | None) -> None:
    """Raises a `UserError` where the page or its figures cannot go."""
    from components.errors import UserError
    from components.files import writable

    if path.is_dir():
        raise UserError(
            "it is a folder", str(path), "Give the name of a file, such as report.html."
        )
    if pictures is not None and pictures.exists() and not pictures.is_dir():
        raise UserError("it is no folder", str(pictures), "Give a folder to --figures.")
    for folder in filter(None, (path.parent, pictures)):
        if not writable(folder):
            raise UserError(
                "it cannot be written", str(folder), "Give a folder that you may write to."
            )
