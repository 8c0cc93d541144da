"""Build the Keras model of a SavedModel again, for another search or for an ensemble."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.components.common.errors import UserError
from regard.components.registry.records import read_record
from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer.export import (
    WarmStartCheckpoint,
    build_float32,
    create_tokenizers,
    read_warm_start,
)
from regard.components.trainer.warm_start import READ_ERRORS
from regard.models import tasks
from regard.models.ensemble import Ensemble
from regard.models.tasks.base import Task
from regard.models.tasks.served_model import ServedModel


@dataclasses.dataclass(frozen=True)
class RebuiltModel:
    """A model that can be exported again.

    Attributes:
        task: its task.
        model: the Keras model, in float32.
        config: the sections ``model`` and ``search``; of an ensemble, those of its first model.
        tokenizers: one per text feature.
    """

    task: Task
    model: Any
    config: TrainerConfig
    tokenizers: Mapping[str, Any]

    def served(self, search: Any = None) -> ServedModel:
        """Return the model as it is exported, by default with its own search."""
        search = search or self.config.search
        return self.task.served_model(self.model, self.tokenizers, self.config.model, search)


def read_checkpoint(folder: Path, name: str = "") -> WarmStartCheckpoint:
    """Read the weights and settings of a SavedModel.

    Args:
        folder: the folder of the SavedModel.
        name: the name of the model in messages.

    Raises:
        UserError: they are missing or cannot be read.
    """
    remedy = "Run its pipeline again; a finished training is only exported again."
    try:
        checkpoint = read_warm_start(folder, name)
    except READ_ERRORS as error:
        raise UserError(f"The weights cannot be read: {error}", str(folder), remedy) from error
    if checkpoint is None:
        raise UserError("The model was exported without its settings.", str(folder), remedy)
    if checkpoint.search is None:  # exports of older versions
        search = read_record(folder).config.get("search")
        checkpoint = dataclasses.replace(checkpoint, search=search)
    return checkpoint


def rebuild(checkpoints: Sequence[WarmStartCheckpoint]) -> RebuiltModel:
    """Build a model, or the ensemble of several models with the search of the first one.

    Raises:
        UserError: the settings or weights do not fit this version of Regard.
    """
    models = []
    try:
        first, *_ = configs = [_config(checkpoint, checkpoint.model) for checkpoint in checkpoints]
        task, tokenizers = tasks.get(first.task), create_tokenizers(checkpoints[0].tokenizers)
        for checkpoint, config in zip(checkpoints, configs, strict=True):
            members = [_config(checkpoint, member) for member in checkpoint.members] or [config]
            built = [build_float32(task, member, tokenizers) for member in members]
            models.append(_join(built))
            models[-1].set_weights(checkpoint.weights)
    except READ_ERRORS as error:
        remedy = "Run its pipeline again."
        raise UserError(f"{checkpoint.name} cannot be built: {error}", remedy=remedy) from error
    return RebuiltModel(task, _join(models), first, tokenizers)


def _config(checkpoint: WarmStartCheckpoint, model: Mapping[str, object]) -> TrainerConfig:
    values = {"task": checkpoint.task, "model": model, "search": checkpoint.search}
    return TrainerConfig.model_validate({**values, "training": {}})


def _join(models: Sequence[Any]) -> Any:
    if len(models) == 1:
        return models[0]
    ensemble = Ensemble(models)
    ensemble.build()
    return ensemble
