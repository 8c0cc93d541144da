"""``run_fn``, which TFX's Trainer calls: an adapter of ``train_and_export``.

``python -m regard.components.trainer.run_fn`` is the process of one worker of a distributed
training, which ``distributed_worker`` starts.
"""

import contextlib
import sys
from typing import Any

import tensorflow as tf

from regard.components.settings.trainer import TrainingJob
from regard.components.trainer import distributed_worker, job_process, worker_connection
from regard.components.trainer.backends import current_backend
from regard.components.trainer.checkpoint import checkpoint_lock
from regard.components.trainer.distributed import local_device_group
from regard.components.trainer.jax_training import train_on_jax
from regard.components.trainer.starting_models import check_ensemble
from regard.components.trainer.train_and_export import export_trained, train_and_export
from regard.components.trainer.training_key import with_checkpoint_folder


def run_fn(fn_args: Any) -> None:
    """Train the model and export it, after any other run of the same training has ended.

    Args:
        fn_args: TFX's ``FnArgs``, see ``TrainingJob.from_fn_args``.

    Raises:
        UserError: a split has no usable row.
    """
    job = with_checkpoint_folder(TrainingJob.from_fn_args(fn_args))
    devices = job.config.training.devices
    with checkpoint_lock(job.run.checkpoint_folder):
        if job.config.training.backend == "jax":
            check_ensemble(job)
            _hide_gpus()
            export_trained(train_on_jax(job))
        elif devices == "workers":
            distributed_worker.run_chief(job.model_dump_json())
        else:
            train_and_export(job, local_device_group(devices))


def _hide_gpus() -> None:
    """Leave the GPUs to the process on JAX: TensorFlow may not even support them."""
    with contextlib.suppress(RuntimeError):  # TensorFlow uses them already
        tf.config.set_visible_devices([], "GPU")


def _train_with_workers(content: str) -> None:
    """Train as one of several workers.

    Args:
        content: the job as JSON; empty if this worker is not the chief.
    """
    with worker_connection.connect(current_backend()) as group:
        chief_job = TrainingJob.model_validate_json(content) if content else None
        train_and_export(worker_connection.share_job(group, chief_job), group)


if __name__ == "__main__":
    job_process.exit_process(job_process.main(sys.argv[1:], _train_with_workers))
