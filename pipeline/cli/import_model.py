"""``regard import``: publish a model of another framework in the registry."""

import dataclasses
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

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
from regard.pipeline.deployment.model_download import download_model
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
    `target.spm`, `vocab.json` and `generation_config.json`.

    [bold]Examples[/bold]

      regard import marian opus-mt-en-de --name opus-en-de

      regard predict opus-en-de "A dog runs."

    [bold]Exit status[/bold]: 0 success; 2 user error.
    """
    _import(lambda models: models.read_marian(folder), name, config, registry, as_json)


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
    pairs = [tuple(text.split("-")) for text in dict.fromkeys(pair)]
    for languages in pairs:
        if len(languages) != 2 or not all(languages):
            message = f"{'-'.join(languages)!r} is no pair of languages."
            raise UserError(message, "--pair", "Give a source and a target, such as en-fr.")
    _import(lambda models: models.read_m2m(folder, pairs), name, config, registry, as_json)


@app.command()
def joeynmt(
    folder: FolderArgument,
    name: NameOption,
    checkpoint: Annotated[
        str, option("--checkpoint", "FILE", "The name of the checkpoint in the folder.")
    ] = "best.ckpt",
    config: ConfigOption = None,
    registry: RegistryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import a Transformer of JoeyNMT 2 from the folder of its training (model_dir).

    The folder has `config.yaml`, a checkpoint, `src_vocab.txt`, `trg_vocab.txt` and the
    SentencePiece models.

    [bold]Examples[/bold]

      regard import joeynmt models/wmt --name wmt

      regard import joeynmt models/wmt --name wmt --checkpoint 40000.ckpt

    [bold]Exit status[/bold]: 0 success; 2 user error.
    """
    _import(lambda models: models.read_joeynmt(folder, checkpoint), name, config, registry, as_json)


@app.command("opennmt-tf")
def opennmt_tf(
    folder: FolderArgument,
    name: NameOption,
    heads: Annotated[
        int | None,
        option(
            "--heads",
            "N",
            "The number of attention heads: 8 in Transformer, 16 in TransformerBig and ScalingNmt, "
            "2 in TransformerTiny. Required, except for relative positions, which show it.",
            "none",
        ),
    ] = None,
    source_end: Annotated[
        bool,
        flag("--source-end", "The model reads </s> after a source (source_sequence_controls)."),
    ] = False,
    config: ConfigOption = None,
    registry: RegistryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import a Transformer of OpenNMT-tf 2 from a folder with a checkpoint.

    The folder also has the SentencePiece models, `source.model` and `target.model` or
    `shared.model`, and the vocabularies, `source.vocab` and `target.vocab` or `shared.vocab`.

    The weights do not show the number of heads, the activation and sinusoidal positions. Regard
    assumes ReLU, and either relative or sinusoidal positions.

    [bold]Examples[/bold]

      regard import opennmt-tf averaged --name wmt --heads 8

      regard import opennmt-tf scaling --name wmt --heads 16 --source-end

    [bold]Exit status[/bold]: 0 success; 2 user error.
    """
    _import(
        lambda models: models.read_opennmt_tf(folder, heads, source_end),
        name,
        config,
        registry,
        as_json,
    )


@app.command()
def fetch(
    url: Annotated[str, argument("URL", "The address of the files of a model.")],
    out: Annotated[Path, option("--out -o", "DIR", "Folder for the files.")],
    checksums: Annotated[
        Path | None,
        option(
            "--checksums",
            "FILE",
            "SHA-256 and name of each file, as sha256sum writes them.",
            "those of an earlier download",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Download the files of a Marian, M2M-100 or NLLB model and verify their checksums.

    Existing files are verified and kept. SHA256SUMS in the folder records the checksums of a first
    download, so that a later one, for example on another machine with this file, gets the same
    files.

    [bold]Example[/bold]

      regard import fetch https://huggingface.co/NAME/resolve/REVISION -o opus
    """
    with terminal.working("Downloading …"):
        names = download_model(url, out, checksums)
    if as_json:
        terminal.print_json({"folder": str(out), "downloaded": names})
        return
    terminal.print_lines(f"{out}: {len(names)} files downloaded", *(f"  {name}" for name in names))


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
        with silence_output():
            shapes = _load().weight_shapes(folder)
        if as_json:
            terminal.print_json(shapes)
        else:
            terminal.print_lines(*(f"{key}  {list(shape)}" for key, shape in shapes.items()))
        return
    if name is None:
        raise UserError("The model needs a name in the registry.", "--name", "Give --name NAME.")
    _import(lambda models: models.read_npz(folder), name, config, registry, as_json)


def _load() -> Any:
    """Return the module that imports models; it loads TensorFlow, which prints messages."""
    return import_module("regard.pipeline.deployment.importing")


def _import(
    read: Callable[[Any], Any],
    name: str,
    config: Path | None,
    registry: Path | None,
    as_json: bool,
) -> None:
    """Import a model, and report the result.

    Args:
        read: reads the model with the module of ``_load``.
        name: the model's name in the registry.
        config: the file for a configuration.
        registry: the registry's folder.
        as_json: whether to report in JSON.
    """
    root = registry or Workspace.from_environment().registry
    with terminal.working("Importing …"), silence_output():
        models = _load()
        result = models.import_model(lambda: read(models), root, name, config)
    if as_json:
        terminal.print_json({"model": f"{name}@{result.version}", **dataclasses.asdict(result)})
        return
    state = "Imported as" if result.is_new else "The newest version is this same model:"
    terminal.print_lines(
        f"{state} {name}@{result.version} ({result.parameters:,} parameters)",
        f"  licence: {result.licence or 'the folder states none'}",
        *(
            [f"  {result.checked_rows} outputs reproduced in a fresh process"]
            if result.is_new
            else []
        ),
        *([f"  to fine-tune it, name your data in {config}"] if config else []),
    )
