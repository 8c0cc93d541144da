"""The key of a training: a digest of everything that the trained weights depend on.

The folder of its checkpoints has the name of the key.
"""

import hashlib
import importlib.metadata
import os
from pathlib import Path
from typing import Protocol

from regard.components.common.code_digest import code_digest
from regard.components.settings.trainer import TrainerConfig, TrainingData, TrainingJob
from regard.core.files import files_digest, folder_digest, sha256_file
from regard.core.modules import module_of
from regard.core.plugins import plugin_modules
from regard.core.provenance import package_version
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
    run_fn = config.training.run_fn
    own = [module_of(run_fn)] if run_fn is not None else []
    return [*tasks.training_modules(config.task), *plugin_modules(*settings), *own]


def trainer_code(config: TrainingSections) -> str:
    """Return a digest of the code that trains and exports a configuration's models."""
    # Not the executor: the settings and the models that it adds have keys of their own.
    modules = ["regard.components.trainer.train_and_export"]
    if config.training.backend == "jax":
        modules.append("regard.components.trainer.jax_process")
    return code_digest(*modules, *training_modules(config))


def validation_settings(config: TrainingSections) -> list[str]:
    """Return what selects the best weights if a metric of decoded outputs compares them."""
    stop = config.training.early_stopping
    if stop is None or stop.metric == "loss":
        return []
    limits = {"max_length_factor", "max_length_offset"}
    search = config.search.model_dump_json(include=limits) if config.search else ""
    return [search, f"sacrebleu {importlib.metadata.version('sacrebleu')}"]


def library_versions(backend: str) -> list[str]:
    """Return the versions of the libraries that compute, with those of a backend."""
    names = [*LIBRARIES, "jax"] if backend == "jax" else LIBRARIES
    return [f"{name} {package_version(name)}" for name in names]


def training_key(config: TrainerConfig, data: TrainingData) -> str:
    """Return a digest of what the trained weights depend on, except the model of a warm start.

    Args:
        config: the settings, with the parameters of this run.
        data: the files are read.
    """
    parts = [
        config.task,
        config.model.to_json(),
        config.training.key_json(),
        config.tags.model_dump_json() if config.tags else "",
        config.protect.model_dump_json() if config.protect else "",
        *validation_settings(config),
        trainer_code(config),
        *library_versions(config.training.backend),
        folder_digest(Path(data.transform_graph, "tokenizer")),
    ]
    for path in map(Path, (*data.train_files, *data.eval_files)):
        parts.append(files_digest(path.parent.parent, [path]))
    pretrained = getattr(config.model, "pretrained", None)
    vectors = pretrained.files().values() if pretrained else ()
    parts += [sha256_file(path) for path in sorted(filter(os.path.isfile, vectors))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def with_checkpoint_folder(job: TrainingJob) -> TrainingJob:
    """Return the job with a folder for the checkpoints of this training, if it has none yet.

    Without ``checkpoints`` it is next to the folders of the node's executions, so that a later
    execution resumes. The files are read to compute the key if there is none, or if it may
    describe other data.
    """
    run = job.run
    key = run.checkpoint_key or _checkpoint_key(job)
    if run.checkpoint_key and run.is_rewirable:
        key += f"-{training_key(job.config, job.data)}"
    changes = {
        "checkpoints": run.checkpoints or _default_checkpoints(job.run_folder),
        "checkpoint_key": key,
        "is_rewirable": False,
    }
    return job.model_copy(update={"run": run.model_copy(update=changes)})


def _default_checkpoints(run_folder: str) -> str:
    return str(Path(run_folder).absolute().parent / "checkpoints")


def _checkpoint_key(job: TrainingJob) -> str:
    """Return the key of the training, with the digest of the model of a warm start."""
    key = training_key(job.config, job.data)
    if job.config.training.warm_start:
        key += f"-{job.run.start.digest[:16] if job.run.start else 'random'}"
    return key
