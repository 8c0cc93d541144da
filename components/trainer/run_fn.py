"""``run_fn``, which TFX's Trainer calls: train a model and export it.

``python -m regard.components.trainer.run_fn`` is the process of one worker of a distributed
training, which ``distributed_worker`` starts.
"""

import os
import sys
from pathlib import Path
from typing import Any

import tensorflow as tf

from regard.components.common.code_digest import code_digest
from regard.components.settings.trainer import NODE, TrainerConfig, TrainingData, TrainingJob
from regard.components.trainer import distributed_worker, fine_tuning
from regard.components.trainer.checkpoint import Checkpoints, checkpoint_lock
from regard.components.trainer.checkpoint_folder import with_checkpoint_key, with_default_folder
from regard.components.trainer.distributed import (
    DeviceGroup,
    connect_workers,
    local_device_group,
)
from regard.components.trainer.export import create_tokenizers, export, write_warm_start
from regard.components.trainer.optimizer import resolve_precision
from regard.components.trainer.train import WorkerResult, train
from regard.core import events
from regard.core.errors import UserError
from regard.core.files import write_json

# Rows whose outputs the serving check compares with those of the exported model.
_REFERENCE_ROWS = 8
_CONNECTION_ERRORS = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)


def run_fn(fn_args: Any) -> None:
    """Train the model and export it, after any other run of the same training has ended.

    Args:
        fn_args: TFX's ``FnArgs``; its ``custom_config`` is a ``TrainerConfig`` as JSON values.

    Raises:
        UserError: a split has no usable row.
    """
    data = TrainingData.from_fn_args(fn_args)
    config = TrainerConfig.model_validate(fn_args.custom_config)
    config = with_default_folder(config, fn_args.model_run_dir)
    config = with_checkpoint_key(config, data)
    job = TrainingJob(
        config=config,
        data=data,
        run_folder=fn_args.model_run_dir,
        export_folder=fn_args.serving_model_dir,
    )
    with checkpoint_lock(config.checkpoint_folder):
        if config.training.devices == "workers":
            distributed_worker.run_chief(job.model_dump_json())
        else:
            train_and_export(job, local_device_group(config.training.devices))


def train_and_export(job: TrainingJob, group: DeviceGroup | None) -> None:
    """Train in this process, and write the SavedModel, the Keras model and ``training.json``.

    Args:
        job: what to train, and where to write.
        group: the devices that train together; None for a single device.

    Raises:
        UserError: a split has no usable row.
    """
    result = train(job.config, job.data, job.run_folder, group)
    if isinstance(result, WorkerResult):
        return  # the chief writes
    config, model, state = result.config, result.model, result.state
    events.emit("progress", node=NODE, text=f"step {state.step} · exporting the model")
    rows = result.eval_batches.complete_rows(_REFERENCE_ROWS)
    tokenizers = create_tokenizers(result.sentencepiece_models)
    export(model, result.network, config, tokenizers, job.export_folder, rows)
    if not config.ensemble:  # the weights of an ensemble are those of several models
        write_warm_start(Path(job.export_folder), model, config, result.sentencepiece_models)
    model.save(Path(job.run_folder) / "model.keras")
    record = {
        **result.record,
        "parameters": model.count_params(),
        "trained_parameters": fine_tuning.trained_parameters(model),
        "steps": state.step,
        "epochs": state.epoch,
        "seconds": round(state.seconds, 1),
        "target_tokens": state.tokens,
        "stop_reason": state.stop_reason,
        "history": state.history,
        "best_step": state.best_step,
        "average": state.average,
        "ensemble": [member.model for member in config.ensemble],
        "devices": group.size if group else 1,
        "precision": config.training.precision,
    }
    write_json(Path(job.run_folder) / "training.json", record)
    events.emit("note", node=NODE, text=f"training ended by {state.stop_reason}")
    Checkpoints(config.checkpoint_folder).prune_others(keep=2)


def _train_with_workers(content: str) -> None:
    """Train as one of several workers.

    Args:
        content: the job as JSON; empty if this worker is not the chief.
    """
    spec = distributed_worker.WorkerSpec.from_environment(os.environ)
    group = connect_workers(spec.index, len(spec.addresses))
    code = code_digest("regard.components.trainer", "regard.models")

    def chief_job() -> list[str]:
        job = TrainingJob.model_validate_json(content)
        job = job.model_copy(update={"config": resolve_precision(job.config)})
        return [job.model_dump_json(), code]

    try:
        job, chief_code = group.broadcast_object(chief_job)
        if chief_code != code:
            raise UserError(
                "The chief and this worker run different versions of Regard.",
                remedy="Install the same version on all workers, and start them again.",
            )
        train_and_export(TrainingJob.model_validate_json(job), group)
    except _CONNECTION_ERRORS as error:
        raise distributed_worker.connection_error(error.message) from error


if __name__ == "__main__":
    distributed_worker.exit_process(distributed_worker.main(sys.argv[1:], _train_with_workers))
