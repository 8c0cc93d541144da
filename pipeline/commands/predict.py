"""``regard predict``: answers of a model, for arguments or for lines from standard input."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
            help="What the model takes: a text, the path of an image, or points as JSON; of a "
            "model with several inputs so many TEXTs make a row. Without any, or with -: lines "
            "from standard input, inputs separated by tabs. Texts that begin with a dash go "
            "behind --.",
        ),
    ] = None,
    align: Annotated[
        bool, typer.Option("--align", help="Show where the model looked, as a small table.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw where the model looked, as FILE.png, .svg or .pdf; of several rows each "
            "into its own file.",
            show_default=False,
        ),
    ] = None,
    registry: terminal.RegistryOption = None,
) -> None:
    """Answer what is given, or the lines of standard input: one answer a line, in order.

    [bold]Examples[/bold]

      regard predict quickstart "Friday, 20 November 2026"

      regard predict quickstart@1 "Friday, 20 November 2026" --align

      regard predict translation < sentences.en > sentences.de

      regard predict similarity "A man plays a guitar." "Someone makes music."

      regard predict captioning photo.jpg --picture looks.png
    """
    from components.pictures import FONTS_REMEDY, check_path
    from components.registry import Registry
    from pipeline import look_picture, predicting
    from pipeline.typed_rows import Reader
    from pipeline.workspace import Workspace

    if picture is not None:
        check_path(picture)
    path = Registry(registry or Workspace.from_environment().registry).resolve(model)
    given = [] if texts in (None, ["-"]) else list(texts or [])
    console = terminal.out()
    width = console.width
    ascii_only = not console.encoding.startswith("utf")
    with predicting.quiet() as out:
        loaded = predicting.Model(path)
        if picture is not None:
            _check_looks(loaded.contract, "--picture")
        if align and not as_json:
            _check_looks(loaded.contract, "--align")
        reader = Reader(loaded.contract)
        if given:
            rows = predicting.batches(reader.arguments(given))
        else:
            # A file object of our own: the reading thread may sit in it when the process ends.
            rows = reader.lines(predicting.stream_batches(open(os.dup(0), "rb")))  # noqa: SIM115
        boxes = False
        told = loaded.answers(rows, align=align or picture is not None)
        for number, (row, answer) in enumerate(told, 1):
            if picture is not None and answer is not None:
                drawn = look_picture.write(row, answer, look_picture.numbered(picture, number))
                boxes = boxes or not drawn
            if as_json:
                fields = predicting.as_dict(row, answer, loaded.contract)
                text = json.dumps(fields, ensure_ascii=False)
            else:
                text = (
                    _with_table(answer, width, ascii_only) if align else predicting.one_line(answer)
                )
            out.write(f"{text}\n")
            out.flush()
    if boxes:
        terminal.err().print(FONTS_REMEDY, soft_wrap=True)


def _check_looks(contract: Mapping[str, Any], option: str) -> None:
    """Raises a `UserError` where a table or a picture cannot show where the model looked."""
    from components.errors import UserError

    looks = contract["looks"]
    if looks is None:
        raise UserError(
            "this model does not tell where it looked",
            where=option,
            remedy="Leave it out; --align --json gives all that the model tells.",
        )
    kinds = {entry["name"]: entry["kind"] for entry in contract["inputs"]}
    if option == "--align" and looks["columns"] in kinds:
        kind = {"image": "an image"}.get(kinds[looks["columns"]], kinds[looks["columns"]])
        raise UserError(
            f"this model looks at {kind}, which a table of pieces cannot show",
            where="--align",
            remedy="--picture draws where it looked; --align --json gives the numbers.",
        )


def _with_table(answer: Answer | None, width: int, ascii_only: bool) -> str:
    """The answer, and below it where the model looked."""
    from pipeline import alignment_table, predicting

    text = predicting.one_line(answer)
    if answer is None:
        return text
    looks, outputs = answer.contract["looks"], answer.outputs
    sides = outputs[looks["columns"]], outputs[looks["rows"]]
    rows = alignment_table.draw(*sides, outputs[looks["weights"]], width, ascii_only)
    return "\n".join([text, *rows, ""])
