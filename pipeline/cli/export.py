"""``regard export``: convert a model for another inference engine."""

import dataclasses
from pathlib import Path
from typing import Annotated

from regard.core.native_output import silence_output
from regard.pipeline.cli import terminal
from regard.pipeline.cli.completion import complete_version
from regard.pipeline.cli.options import (
    JsonOption,
    Quantization,
    RegistryOption,
    argument,
    flag,
    option,
)
from regard.pipeline.deployment.export import to_ctranslate2
from regard.pipeline.workspace import Workspace
from regard.serving.export.ctranslate2 import INFO_FILE


def export(
    model: Annotated[
        str,
        argument("MODEL", "NAME, NAME@VERSION or a folder.", autocompletion=complete_version),
    ],
    out: Annotated[
        Path | None, option("--out -o", "DIR", "Output folder.", "./NAME-ctranslate2")
    ] = None,
    quantization: Annotated[
        Quantization,
        option("--quantization", "TYPE", "Type of the weights: float32, float16, int16 or int8."),
    ] = "float32",
    force: Annotated[bool, flag("--force", "Replace an earlier export.")] = False,
    registry: RegistryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export a Transformer to CTranslate2, an inference engine for CPUs.

    The conversion is verified: CTranslate2 scores stored outputs of the model, and in float32 the
    log-probabilities must be equal. Beam search may still find other outputs.

    [bold]Examples[/bold]

      regard export multi30k-transformer

      regard export multi30k-transformer@3 --quantization int8 -o models/fast

    [bold]Exit status[/bold]: 0 success; 2 user error.
    """
    root = registry or Workspace.from_environment().registry
    folder = out or Path(f"{Path(model.partition('@')[0]).name}-ctranslate2")
    with terminal.working("Exporting …"), silence_output():
        exported = to_ctranslate2(model, root, folder, quantization, force=force)
    if as_json:
        terminal.print_json(dataclasses.asdict(exported))
        return
    verified = "not verified: the model has no stored outputs"
    if exported.difference is not None:
        verified = (
            f"verified with {exported.rows} outputs: the log-probability of a token differs by "
            f"at most {exported.difference:.1g}"
        )
    arguments = {key: repr(value) for key, value in exported.arguments.items()}
    lookup, begin = [], ""
    if exported.first_tokens:
        info = f'json.load(open("{exported.folder / INFO_FILE}"))'
        lookup = ["import json", f'first_tokens = dict({info}["first_tokens"])']
        arguments = {"target_prefix": "[[first_tokens[tokens[0]]]]", **arguments}
        begin = "[1:]"
    listed = "".join(f", {key}={value}" for key, value in arguments.items())
    terminal.print_lines(
        f"Exported {exported.model} to {exported.folder} ({exported.size / 1e6:,.1f} MB)",
        f"  {verified}",
        "",
        "import ctranslate2, sentencepiece",
        f'translator = ctranslate2.Translator("{exported.folder}")',
        f'source = sentencepiece.SentencePieceProcessor("{exported.folder}/source.model")',
        f'target = sentencepiece.SentencePieceProcessor("{exported.folder}/target.model")',
        *lookup,
        "tokens = source.encode(text, out_type=str)",
        f"results = translator.translate_batch([tokens]{listed})",
        f"target.decode(results[0].hypotheses[0]{begin})",
    )
