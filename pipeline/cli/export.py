"""``regard export``: convert a model for another inference engine, or combine several models."""

import dataclasses
from pathlib import Path
from typing import Annotated

from regard.components.common.errors import UserError
from regard.pipeline.cli import terminal
from regard.pipeline.cli.options import (
    JsonOption,
    Quantization,
    RegistryOption,
    argument,
    flag,
    option,
)
from regard.pipeline.workspace import Workspace


def export(
    models: Annotated[list[str], argument("MODEL...", "NAME, NAME@VERSION or a folder.")],
    ensemble: Annotated[bool, flag("--ensemble", "Combine several models in one.")] = False,
    out: Annotated[
        Path | None,
        option("--out -o", "DIR", "Output folder.", "./NAME-ctranslate2 or ./NAME-ensemble"),
    ] = None,
    quantization: Annotated[
        Quantization, option("--quantization", None, "Type of the weights; int8 is the smallest.")
    ] = "float32",
    force: Annotated[bool, flag("--force", "Replace an earlier export.")] = False,
    registry: RegistryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Convert a Transformer to CTranslate2, an inference engine for CPUs, or export an ensemble.

    An ensemble decodes with the mean of its models' probabilities. Its folder works like a model
    in `regard predict`, `evaluate` and `serve`.

    The conversion is verified: CTranslate2 scores stored outputs of the model, and in float32 the
    log-probabilities must be equal. Beam search may still find other outputs.

    [bold]Examples[/bold]

      regard export multi30k-transformer

      regard export multi30k-transformer@3 --quantization int8 -o models/fast

      regard export --ensemble multi30k@3 multi30k-deep@1 -o models/ensemble

    [bold]Exit status[/bold]: 0 success; 2 user error.
    """
    from regard.components.common.native_output import silence_output
    from regard.pipeline.deployment import export

    root = registry or Workspace.from_environment().registry
    if (len(models) > 1) != ensemble:
        count = "An ensemble has several models." if ensemble else "There are several models."
        raise UserError(count, "MODEL", "Give one model, or several with --ensemble.")
    suffix = "ensemble" if ensemble else "ctranslate2"
    folder = out or Path(f"{Path(models[0].partition('@')[0]).name}-{suffix}")
    with terminal.working("Exporting …"), silence_output():
        if ensemble:
            exported = export.to_ensemble(models, root, folder, force=force)
        else:
            exported = export.to_ctranslate2(models[0], root, folder, quantization, force=force)
    if as_json:
        terminal.print_json(dataclasses.asdict(exported))
        return
    first_line = f"Exported {exported.model} to {exported.folder} ({exported.size / 1e6:,.1f} MB)"
    if ensemble:
        text = f"  decoding takes the time and memory of {len(models)} models"
        terminal.print_lines(first_line, text)
        return
    verified = "not verified: the model has no stored outputs"
    if exported.difference is not None:
        verified = (
            f"verified with {exported.rows} outputs: the log-probability of a token differs by "
            f"at most {exported.difference:.1g}"
        )
    arguments = "".join(f", {key}={value!r}" for key, value in exported.arguments.items())
    terminal.print_lines(
        first_line,
        f"  {verified}",
        "",
        "import ctranslate2, sentencepiece",
        f'translator = ctranslate2.Translator("{exported.folder}")',
        f'source = sentencepiece.SentencePieceProcessor("{exported.folder}/source.model")',
        f'target = sentencepiece.SentencePieceProcessor("{exported.folder}/target.model")',
        f"results = translator.translate_batch([source.encode(text, out_type=str)]{arguments})",
        "target.decode(results[0].hypotheses[0])",
    )
