"""The key of a training: a digest of everything that the trained weights depend on."""

import hashlib
import importlib.metadata
import os
from pathlib import Path
from typing import Protocol

from regard.components.common.code_digest import code_digest
from regard.components.settings.trainer import TrainerConfig, TrainingData
from regard.core.files import files_digest, folder_digest, sha256_file
from regard.core.plugins import plugin_modules
from regard.models import tasks
from regard.models.settings.base import Section
from regard.models.settings.training import TrainingConfig

LIBRARIES = ("tensorflow", "keras", "tensorflow-text", "sentencepiece")


class TrainingSections(Protocol):
    """The sections that a training depends on."""

    @property
    def task(self) -> str: ...

    @property
    def model(self) -> Section: ...

    @property
    def training(self) -> TrainingConfig: ...

    @property
    def search(self) -> Section | None: ...


def training_modules(config: TrainingSections) -> list[str]:
    """Return the modules of the task, and those of other packages, that a training uses."""
    settings = config.model.to_json(), config.training.key_json()
    return [*tasks.training_modules(config.task), *plugin_modules(*settings)]


def trainer_code(config: TrainingSections) -> str:
    """Return a digest of the code that trains and exports a configuration's models."""
    # Not the executor: what it adds, the models to start from, has keys of its own.
    roots = "regard.components.trainer.run_fn", "regard.components.common.runtime_parameters"
    return code_digest(*roots, *training_modules(config))


def validation_settings(config: TrainingSections) -> list[str]:
    """Return what selects the best weights if a metric of decoded outputs compares them."""
    stop = config.training.early_stopping
    if stop is None or stop.metric == "loss":
        return []
    limits = {"max_length_factor", "max_length_offset"}
    search = config.search.model_dump_json(include=limits) if config.search else ""
    return [search, f"sacrebleu {importlib.metadata.version('sacrebleu')}"]


def library_versions() -> list[str]:
    """Return the versions of the libraries that compute."""
    return [f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES]


def training_key(config: TrainerConfig, data: TrainingData) -> str:
    """Return a digest of what the trained weights depend on, except the model of a warm start.

    Args:
        config: the configuration, with the parameters of this run.
        data: the files are read.
    """
    parts = [
        config.task,
        config.model.to_json(),
        config.training.key_json(),
        config.data.model_dump_json(),
        *validation_settings(config),
        trainer_code(config),
        *library_versions(),
        folder_digest(Path(data.transform_graph, "tokenizer")),
    ]
    for path in map(Path, (*data.train_files, *data.eval_files)):
        parts.append(files_digest(path.parent.parent, [path]))
    pretrained = getattr(config.model, "pretrained", None)
    vectors = pretrained.files().values() if pretrained else ()
    parts += [sha256_file(path) for path in sorted(filter(os.path.isfile, vectors))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
