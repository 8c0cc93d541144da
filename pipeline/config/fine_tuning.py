"""Configurations that fine-tune a published model."""

import os
import re
from pathlib import Path
from typing import Any

from regard.components.common.sentencepiece_models import MODEL_TYPES, parse_model_fields
from regard.components.importing.foreign_model import ForeignModel
from regard.core.errors import UserError
from regard.core.files import atomic_write, is_writable
from regard.core.yaml_text import to_yaml
from regard.pipeline.config.config import NAME_PATTERN

_HEADER = """\
# Fine-tunes {version} by low-rank changes of its weights. Name your data, then:
#
#   regard validate {file}
#   regard run {file}

name: {name}
task: {task}

data:
  root: data                  # relative to this file
  train: {train}
  # Default: 5 % of train for each.
  # eval: {eval}
  # test: {test}

"""
_FILES = {
    "train": "{source: train.src, target: train.trg}",
    "eval": "{source: dev.src, target: dev.trg}",
    "test": "{source: test.src, target: test.trg}",
}
# A table, because each row has its tag.
_TABLES = {
    "train": "train.tsv            # its first line: source, target, tag",
    "eval": "dev.tsv",
    "test": "test.tsv",
}


def write_fine_tuning(
    path: Path, model: ForeignModel, version: str, registry: str | None = None
) -> None:
    """Write a configuration that starts from an imported model, without the names of the data.

    Args:
        path: the file; its name is that of the pipeline.
        model: the model.
        version: ``NAME@VERSION`` of the model in the registry.
        registry: the registry, if it is not that of the workspace.

    Raises:
        UserError: the file cannot be written, or its name cannot be that of a pipeline.
    """
    check_path(path)
    config = model.config
    files = _TABLES if config.tags else _FILES
    names = {"version": version, "file": path.name, "name": path.stem, "task": config.task}
    header = _HEADER.format(**names, **files)
    if config.tags:
        tags = {"names": list(config.tags.known), "column": "tag"}
        header = header.rstrip("\n") + "\n" + _indented({"extra": ["tag"], "tags": tags}) + "\n"
    kind = parse_model_fields(model.tokenizers["source"]).trainer_spec.model_type
    search = config.search.model_dump(mode="json", exclude_unset=True) if config.search else {}
    sections: dict[str, Any] = {
        "tokenizer": {
            "type": MODEL_TYPES[kind],
            "shared": len(set(model.tokenizers.values())) == 1,
        },
        "model": config.model.model_dump(mode="json", exclude_unset=True),
        "search": search,
        "training": {
            "warm_start": {"model": version, "keep_tokenizer": True},
            "lora": {"rank": 8},
            "batch_tokens": 4096,
            "max_epochs": 5,
            "learning_rate": 0.0005,
        },
        "evaluation": {"metrics": ["bleu", "chrf"]},
    }
    if registry is not None:
        sections["serving"] = {"registry": registry}
    body = "\n".join(to_yaml({name: section}) for name, section in sections.items())
    atomic_write(path, header + body)


def check_path(path: Path) -> None:
    """Check that a configuration can be written to a file.

    Raises:
        UserError: it exists, its folder cannot be written, or its name cannot be that of a
            pipeline.
    """
    if not re.fullmatch(NAME_PATTERN, path.stem):
        message = f"The file name sets the name of the pipeline, but {path.stem!r} is not valid."
        remedy = "Use small letters, digits and hyphens, for example --config my-model.yaml."
        raise UserError(message, "--config", remedy)
    if os.path.lexists(path):
        raise UserError("The file already exists.", str(path), "Give another name.")
    if not path.absolute().parent.is_dir() or not is_writable(path.absolute().parent):
        message = "The folder of the file does not exist, or cannot be written."
        raise UserError(message, str(path), "Give a file in another folder.")


def _indented(value: dict[str, Any]) -> str:
    return "".join(f"  {line}\n" for line in to_yaml(value).splitlines())
