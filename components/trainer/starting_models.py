"""Reading the exported models that a training starts from, or decodes together with."""

import dataclasses
from pathlib import Path

import numpy as np

from regard.components.common.sentencepiece_models import read_sentencepiece_models
from regard.components.settings.trainer import StartingModel, TrainingJob
from regard.components.trainer.checkpoint import Checkpoints
from regard.components.trainer.export import READ_ERRORS, read_warm_start
from regard.components.trainer.vocabulary_mapping import check_vocabularies
from regard.components.trainer.warm_start import start_error
from regard.components.trainer.warm_start_checkpoint import WarmStartCheckpoint
from regard.core.errors import UserError
from regard.models import tasks
from regard.serving.content_digest import content_digest

ENSEMBLE_KEY = "training.ensemble"


def read_start(job: TrainingJob) -> WarmStartCheckpoint | None:
    """Return the model that a training starts from; None for random weights or to resume.

    Raises:
        UserError: the model cannot be read, or has changed.
    """
    if job.run.start is None or not job.config.training.warm_start:
        return None
    if Checkpoints(job.run.checkpoint_folder).exists():  # the training has its own weights
        return None
    return read_starting_model(job.run.start)


def check_ensemble(job: TrainingJob) -> None:
    """Check that the other models of an ensemble can be read and have the vocabularies of a job.

    Raises:
        UserError: a model cannot be read or has changed, or a vocabulary differs.
    """
    features = tasks.describe(job.config.task).text_features
    tokenizers = read_sentencepiece_models(f"{job.data.transform_graph}/tokenizer", features)
    for member in job.run.ensemble:
        try:
            old = read_starting_model(member)
        except UserError as error:
            raise error.with_texts(error.message, ENSEMBLE_KEY, error.remedy) from error
        check_vocabularies(tokenizers, old.tokenizers, f"this run and {member.model}", ENSEMBLE_KEY)


def read_starting_model(start: StartingModel) -> WarmStartCheckpoint:
    """Read an exported model, and check that it is the one that the run has chosen."""
    path, name = Path(start.path), start.model
    if not path.is_dir():
        raise start_error(f"{name} does not exist any more: there is no folder {str(path)!r}.")
    try:
        checkpoint = read_warm_start(path, name)
    except READ_ERRORS as error:
        raise start_error(f"The weights of {name} cannot be read: {error}") from error
    if checkpoint is None:
        raise start_error(
            f"{name} is an ensemble, or was not exported by this version of Regard.",
            "Train and push a model with training.warm_start: null, and start from that one.",
        )
    if content_digest(path) != start.digest:  # also if it changed while it was read
        raise start_error(
            f"The files of {name} have changed since its digest was computed.",
            "If it was exported again, start the run again. Otherwise, name another model.",
        )
    for weight, value in zip(checkpoint.weight_names, checkpoint.weights, strict=True):
        if not np.isfinite(value).all():
            raise start_error(f"{weight} of {name} is not finite: its training diverged.")
    return dataclasses.replace(checkpoint, digest=start.digest)
