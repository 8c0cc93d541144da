"""``regard export``: a model of the registry for another engine."""

from __future__ import annotations

import dataclasses
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from pipeline.commands import terminal


class Engine(str, Enum):
    """What is to run the model."""

    ctranslate2 = "ctranslate2"


class Quantization(str, Enum):
    """In what the weights are kept; as in ``serving.ctranslate2.QUANTIZATIONS``."""

    float32 = "float32"
    int8 = "int8"
    int16 = "int16"
    float16 = "float16"


def export(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="NAME or NAME@VERSION in the registry, or a folder with a SavedModel.",
            show_default=False,
        ),
    ],
    to: Annotated[Engine, typer.Option("--to", help="The engine.")] = Engine.ctranslate2,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Where to.", show_default="./NAME-ctranslate2"
        ),
    ] = None,
    quantization: Annotated[
        Quantization, typer.Option(help="How the weights are kept; int8 is the smallest.")
    ] = Quantization.float32,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier export.")] = False,
    registry: terminal.RegistryOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Write a Transformer for CTranslate2, an engine made for CPUs.

    It is asked for the probabilities of answers that the model gave when it was trained, and
    refused in float32 if they differ. Its search is its own: the answers of a beam may differ.

    [bold]Examples[/bold]

      regard export quickstart

      regard export multi30k-transformer@3 --quantization int8 -o models/fast

    [bold]Exit status[/bold]: 0 it is written; 2 something is wrong.
    """
    from pipeline import exporting
    from pipeline.workspace import Workspace

    root = registry or Workspace.from_environment().registry
    folder = out or Path(f"{Path(model.partition('@')[0]).name}-{to.value}")
    with terminal.working(f"writing for {to.value} …"):
        done = exporting.to_ctranslate2(model, root, folder, quantization.value, force=force)
    if as_json:
        terminal.print_json({**dataclasses.asdict(done), "folder": str(done.folder)})
        return
    console = terminal.out()
    console.print(f"{done.model} is in {done.folder}: {done.size / 1e6:,.1f} MB", soft_wrap=True)
    if done.difference is None:
        console.print("  not checked: no answers lie beside the model", soft_wrap=True)
    else:
        console.print(
            f"  checked with {done.rows} answers: the mean log-probability of a piece differs by "
            f"{done.difference:.1g} at most",
            soft_wrap=True,
        )
    arguments = "".join(f", {key}={value!r}" for key, value in done.arguments.items())
    for line in (
        "",
        "import ctranslate2, sentencepiece",
        f'translator = ctranslate2.Translator("{done.folder}")',
        f'source = sentencepiece.SentencePieceProcessor("{done.folder}/source.model")',
        f'target = sentencepiece.SentencePieceProcessor("{done.folder}/target.model")',
        f"found = translator.translate_batch([source.encode(text, out_type=str)]{arguments})",
        "target.decode(found[0].hypotheses[0])",
    ):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
