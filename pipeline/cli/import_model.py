"""``regard import``: publish a model of another framework in the registry."""

import dataclasses
from pathlib import Path
from typing import Annotated

from regard.components.importing.foreign_model import ForeignModel
from regard.components.importing.m2m import read_m2m
from regard.components.importing.marian import read_marian
from regard.components.importing.npz import read_npz, weight_shapes
from regard.components.importing.publish import publish_model
from regard.core.errors import UserError
from regard.core.native_output import silence_output
from regard.pipeline.cli import terminal
from regard.pipeline.cli.options import (
    JsonOption,
    RegistryOption,
    argument,
    command_group,
    flag,
    option,
)
from regard.pipeline.config.fine_tuning import write_fine_tuning
from regard.pipeline.workspace import Workspace

app = command_group("Import models of other frameworks.")

FolderArgument = Annotated[Path, argument("FOLDER", "The folder of the model.")]
NameOption = Annotated[str, option("--name", "NAME", "The model's name in the registry.")]
ConfigOption = Annotated[
    Path | None,
    option("--config", "FILE", "Also write a configuration that fine-tunes the model.", "none"),
]


@app.command()
def marian(
    folder: FolderArgument,
    name: NameOption,
    config: ConfigOption = None,
    registry: RegistryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import a MarianMT model, such as OPUS-MT, from a folder of Hugging Face's format.

    The folder has `config.json`, `model.safetensors` or `pytorch_model.bin`, `source.spm`,
    `target.spm`, `vocab.json` and `generation_config.json`. Nothing is downloaded.

    [bold]Examples[/bold]

      regard import marian opus-mt-en-de --name opus-en-de

      regard predict opus-en-de "A dog runs."

    [bold]Exit status[/bold]: 0 success; 2 user error.
    """
    with terminal.working("Reading …"):
        model = read_marian(folder)
    _publish(model, name, config, registry, as_json)


@app.command()
def m2m(
    folder: FolderArgument,
    name: NameOption,
    pair: Annotated[
        list[str],
        option(
            "--pair",
            "SOURCE-TARGET",
            "A source and a target language as the model names them, such as en-fr or "
            "eng_Latn-fra_Latn, which is then a tag of the model; repeatable.",
        ),
    ],
    config: ConfigOption = None,
    registry: RegistryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import an M2M-100 or NLLB model from a folder of Hugging Face's format.

    The folder has `config.json`, `model.safetensors` or `pytorch_model.bin`,
    `sentencepiece.bpe.model`, `vocab.json` or `tokenizer.json`, and the other files of the
    tokenizer.

    [bold]Examples[/bold]

      regard import m2m m2m100_418M --name m2m --pair en-fr --pair fr-en

      regard predict m2m --tag en-fr "A dog runs."

    [bold]Exit status[/bold]: 0 success; 2 user error.
    """
    pairs = []
    for text in pair:
        source, _, target = text.partition("-")
        if not source or not target or "-" in target:
            raise UserError(f"{text!r} is no pair of languages.", "--pair", "Give, say, en-fr.")
        pairs.append((source, target))
    with terminal.working("Reading …"):
        model = read_m2m(folder, list(dict.fromkeys(pairs)))
    _publish(model, name, config, registry, as_json)


@app.command()
def npz(
    folder: FolderArgument,
    name: Annotated[
        str | None, option("--name", "NAME", "The model's name in the registry.", "none")
    ] = None,
    names: Annotated[
        bool, flag("--list", "Print the names and shapes of the weights, and import nothing.")
    ] = False,
    config: ConfigOption = None,
    registry: RegistryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import a model from `model.yaml`, `weights.npz` and SentencePiece models.

    With this format, a script of your own brings a model of any framework.

    [bold]Examples[/bold]

      regard import npz converted --list

      regard import npz converted --name mine

    [bold]Exit status[/bold]: 0 success; 2 user error.
    """
    if names:
        shapes = weight_shapes(folder)
        if as_json:
            terminal.print_json(shapes)
        else:
            terminal.print_lines(*(f"{key}  {list(shape)}" for key, shape in shapes.items()))
        return
    if name is None:
        raise UserError("The model needs a name in the registry.", "--name", "Give --name NAME.")
    with terminal.working("Reading …"):
        model = read_npz(folder)
    _publish(model, name, config, registry, as_json)


def _publish(
    model: ForeignModel, name: str, config: Path | None, registry: Path | None, as_json: bool
) -> None:
    root = registry or Workspace.from_environment().registry
    with terminal.working("Exporting and checking …"), silence_output():
        result = publish_model(model, root, name)
    version = f"{name}@{result.version}"
    if config is not None:
        write_fine_tuning(config, model, version)
    if as_json:
        licence = {"licence": model.licence, "notes": model.notes}
        terminal.print_json({"model": version, **dataclasses.asdict(result), **licence})
        return
    state = "Imported as" if result.is_new else "The newest version is this same model:"
    terminal.print_lines(
        f"{state} {version} ({result.parameters:,} parameters)",
        f"  licence: {model.licence or 'the folder states none'}",
        f"  {result.checked_rows} outputs reproduced in a fresh process",
        *(f"  {note}" for note in model.notes),
        *([f"  to fine-tune it: add your data to {config}"] if config else []),
    )
