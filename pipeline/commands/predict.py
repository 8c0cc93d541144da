"""``regard predict``: answers of a model, for texts or for lines from standard input."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.commands import terminal

if TYPE_CHECKING:
    from serving.saved_model import Answer


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
            metavar="TEXT",
            help="Without texts, or with -: lines from standard input. "
            "Texts that begin with a dash go behind --.",
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
        for source, answer in translator.answers(lines, align=align):
            if as_json:
                text = json.dumps(predicting.as_dict(source, answer), ensure_ascii=False)
            else:
                text = _with_table(answer, width, ascii_only)
            out.write(f"{text}\n")
            out.flush()


def _with_table(answer: Answer | None, width: int, ascii_only: bool) -> str:
    """The answer, and below it where the model looked, if that was asked for."""
    from pipeline import alignment_table, predicting

    text = predicting.one_line(answer)
    if answer is None or answer.alignment is None:
        return text
    rows = alignment_table.draw(
        answer.source_pieces, answer.target_pieces, answer.alignment, width, ascii_only
    )
    return "\n".join([text, *rows, ""])
