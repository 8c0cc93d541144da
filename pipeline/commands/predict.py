"""``regard predict``: answers of a model, for texts or for lines from standard input."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from pipeline.commands import terminal

if TYPE_CHECKING:
    from pipeline.predicting import Answer


def predict(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="NAME or NAME@VERSION in the registry, or a SavedModel folder.",
            show_default=False,
        ),
    ],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TEXT]...", help="Without texts, or with -: lines from standard input."
        ),
    ] = None,
    align: Annotated[
        bool, typer.Option("--align", help="Show where the model looked, as a small table.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
    registry: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The registry.", show_default="$REGARD_HOME/registry"),
    ] = None,
) -> None:
    """Answer texts, or the lines of standard input: one answer a line, in order.

    [bold]Examples[/bold]

      regard predict quickstart "Friday, 20 November 2026"

      regard predict quickstart@1 "Friday, 20 November 2026" --align

      regard predict translation < sentences.en > sentences.de
    """
    from components.registry import Registry
    from pipeline import predicting
    from pipeline.workspace import Workspace

    path = Registry(registry or Workspace.from_environment().registry).resolve(model)
    given = [] if texts in (None, ["-"]) else list(texts or [])
    console = terminal.out()
    width = console.width
    ascii_only = not console.encoding.startswith("utf")
    with predicting.quiet() as out:
        translator = predicting.Translator(path)
        if given:
            lines = predicting.batches(given)
        else:
            # A file object of our own: the reading thread may sit in it when the process ends.
            lines = predicting.stream_batches(open(os.dup(0), "rb"))  # noqa: SIM115
        for answer in translator.answers(lines, align=align):
            _write(out, answer, as_json, width, ascii_only)


def _write(out: IO[str], answer: Answer, as_json: bool, width: int, ascii_only: bool) -> None:
    from pipeline import alignment_table

    if as_json:
        out.write(json.dumps(answer.as_dict(), ensure_ascii=False) + "\n")
    else:
        out.write(answer.translation + "\n")
        if answer.alignment is not None:
            found = answer.alignment
            rows = alignment_table.draw(
                found.source, found.target, found.weights, width, ascii_only
            )
            out.write("".join(f"{row}\n" for row in [*rows, ""]))
    out.flush()
