"""``regard export``: convert a model in the registry for another inference engine."""

from __future__ import annotations

import dataclasses
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from regard.pipeline.cli import terminal


class Engine(str, Enum):
    """The inference engine."""

    ctranslate2 = "ctranslate2"


class Quantization(str, Enum):
    """The type of the weights; see ``regard.serving.export.ctranslate2.QUANTIZATIONS``."""

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
    to: Annotated[Engine, typer.Option("--to", help="Inference engine.")] = Engine.ctranslate2,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Output folder.", show_default="./NAME-ctranslate2"
        ),
    ] = None,
    quantization: Annotated[
        Quantization, typer.Option(help="Type of the weights; int8 is the smallest.")
    ] = Quantization.float32,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier export.")] = False,
    registry: terminal.RegistryOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Convert a Transformer to CTranslate2, an inference engine for CPUs.

    The export is verified: CTranslate2 scores stored outputs of the model, and in float32 the
    log-probabilities must be equal. Beam search may still find other outputs.

    [bold]Examples[/bold]

      regard export quickstart

      regard export multi30k-transformer@3 --quantization int8 -o models/fast

    [bold]Exit status[/bold]: 0 success; 2 user error.
    """
    from regard.pipeline.deployment import export
    from regard.pipeline.workspace import Workspace

    root = registry or Workspace.from_environment().registry
    folder = out or Path(f"{Path(model.partition('@')[0]).name}-{to.value}")
    with terminal.working(f"Converting to {to.value} …"):
        exported = export.to_ctranslate2(model, root, folder, quantization.value, force=force)
    if as_json:
        terminal.print_json({**dataclasses.asdict(exported), "folder": str(exported.folder)})
        return
    console = terminal.out()
    console.print(
        f"Exported {exported.model} to {exported.folder} ({exported.size / 1e6:,.1f} MB)",
        soft_wrap=True,
    )
    if exported.difference is None:
        console.print("  not verified: the model has no stored outputs", soft_wrap=True)
    else:
        console.print(
            f"  verified with {exported.rows} outputs: the log-probability of a token differs by "
            f"at most {exported.difference:.1g}",
            soft_wrap=True,
        )
    arguments = "".join(f", {key}={value!r}" for key, value in exported.arguments.items())
    for line in (
        "",
        "import ctranslate2, sentencepiece",
        f'translator = ctranslate2.Translator("{exported.folder}")',
        f'source = sentencepiece.SentencePieceProcessor("{exported.folder}/source.model")',
        f'target = sentencepiece.SentencePieceProcessor("{exported.folder}/target.model")',
        f"results = translator.translate_batch([source.encode(text, out_type=str)]{arguments})",
        "target.decode(results[0].hypotheses[0])",
    ):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
