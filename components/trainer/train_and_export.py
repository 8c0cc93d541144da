"""Train a model, and write what the Trainer produces: models, their contract, and a record."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from regard.components.common.tokenizers import create_tokenizers
from regard.components.settings.trainer import NODE, TrainingJob
from regard.components.trainer import fine_tuning
from regard.components.trainer.checkpoint import Checkpoints
from regard.components.trainer.device_group import DeviceGroup
from regard.components.trainer.export import export, write_warm_start
from regard.components.trainer.starting_models import check_ensemble, read_start
from regard.components.trainer.train import TrainingResult, train
from regard.core import events
from regard.core.files import write_json
from regard.models.tasks.served_model import Row

# Rows whose outputs the serving check compares with those of the exported model.
_REFERENCE_ROWS = 8


def train_and_export(job: TrainingJob, group: DeviceGroup | None) -> None:
    """Train in this process, and write the SavedModel, the Keras model and ``training.json``.

    Args:
        job: what to train, and where to write.
        group: the devices that train together; None for a single device.

    Raises:
        UserError: a split has no usable row.
    """
    if group is None or group.is_chief:
        check_ensemble(job)
    result = train(job, group, start=read_start)
    if isinstance(result, TrainingResult):  # another worker than the chief writes nothing
        export_trained(result)


def export_trained(result: TrainingResult) -> None:
    """Write the SavedModel, the Keras model and ``training.json`` of a training.

    Args:
        result: the trained model, on TensorFlow.
    """
    job, model, state = result.job, result.model, result.state
    config, ensemble = job.config, job.run.ensemble
    events.emit("progress", node=NODE, text=f"step {state.step} · exporting the model")
    rows = result.eval_batches.complete_rows(_REFERENCE_ROWS)
    tokenizers = create_tokenizers(result.sentencepiece_models)
    folder, calibration_rows = job.export_folder, _calibration_rows(result)
    export(model, result.network, config, tokenizers, folder, rows, ensemble, calibration_rows)
    if not ensemble:  # the weights of an ensemble are those of several models
        write_warm_start(Path(job.export_folder), model, config, result.sentencepiece_models)
    model.save(Path(job.run_folder) / "model.keras")
    record = {
        **result.record,
        "parameters": model.count_params(),
        "trained_parameters": fine_tuning.trained_parameters(model),
        "steps": state.step,
        "epochs": state.epoch,
        "seconds": round(state.seconds, 1),
        "unit": model.unit,
        "target_tokens": state.tokens,
        "stop_reason": state.stop_reason,
        "history": state.history,
        "best_step": state.best_step,
        "average": state.average,
        "ensemble": [member.model for member in ensemble],
        "devices": result.devices,
        "backend": config.training.backend,
        "precision": config.training.precision,
    }
    write_json(Path(job.run_folder) / "training.json", record)
    events.emit("result", node=NODE, text=f"training ended by {state.stop_reason}")
    Checkpoints(job.run.checkpoint_folder).prune_others(keep=2)


def _calibration_rows(result: TrainingResult) -> Iterator[Row]:
    """Return the rows of the eval split that ``serving.confidence`` is fitted on."""
    confidence = result.job.config.serving.confidence
    if confidence is None:
        return iter(())
    batches = dataclasses.replace(result.eval_batches, max_rows=confidence.rows)
    return batches.complete_rows(confidence.rows)
