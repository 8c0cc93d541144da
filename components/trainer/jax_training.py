"""A training on Keras's JAX backend, in a process of its own.

The process of the pipeline computes with TensorFlow, and Keras has one backend in a process. So
another process trains (``jax_job``), without TensorFlow, and leaves its weights and its state in a
file. The process of the pipeline builds the model again on TensorFlow, with these weights, and
exports it as one that it has trained itself.
"""

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import keras
import numpy as np

from regard.components.settings.trainer import TrainingJob
from regard.components.trainer import distributed_worker, job_process
from regard.components.trainer.checkpoint import Checkpoints
from regard.components.trainer.distributed_worker import JAX_PROCESS
from regard.components.trainer.jax_job import JaxJob, TrainedWeights, checked_loss
from regard.components.trainer.optimizer import compile_model
from regard.components.trainer.optimizer_state import restore_optimizer_state, set_updates
from regard.components.trainer.starting_models import read_starting_model
from regard.components.trainer.train import TrainingResult, build_model
from regard.components.trainer.training_inputs import read_inputs
from regard.components.trainer.validation import LOSS
from regard.core.errors import UserError

_TEMPORARY = ".jax-"
# The folder of XLA's programs, next to the folders of checkpoints, and its limit.
_COMPILED, _COMPILED_BYTES = "compiled", 2 << 30
# float32 sums in another order, over all layers.
_TOLERANCE = 1e-3


def train_on_jax(job: TrainingJob) -> TrainingResult:
    """Train in another process on JAX, and return the model on TensorFlow.

    Args:
        job: what to train.

    Raises:
        UserError: JAX is not installed, or an error of the training.
        RuntimeError: the process ended without a message, or the rebuilt model computes another
            loss.
    """
    return rebuild(run_training(job))


def run_training(job: TrainingJob, objective: str = LOSS) -> TrainedWeights:
    """Train in another process on JAX.

    Args:
        job: what to train.
        objective: as in ``train``.

    Raises:
        UserError: JAX is not installed, or an error of the training.
        job_process.ProcessExit: the process ended without a message.
    """
    distributed_worker.check_jax()
    training = job.config.training
    if training.devices == "workers":
        distributed_worker.check_chief(os.environ, training.backend)
    checkpoints = job.run.checkpoint_folder
    Checkpoints(checkpoints).create_folder()
    compiled = checkpoints.parent / _COMPILED
    for leftover in checkpoints.glob(f"{_TEMPORARY}*"):  # of a killed run
        _remove_newer(compiled, leftover.stat().st_mtime)
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_TEMPORARY, dir=checkpoints) as folder:
        result = Path(folder, "result.npz")
        start, start_problem = _save_start(job, Path(folder))
        task = JaxJob(
            job=job,
            start=start,
            start_problem=start_problem,
            result=str(result),
            objective=objective,
        )
        environment = job_process.jax_environment(os.environ, training.deterministic)
        # Here JAX keeps what XLA has compiled for later runs.
        environment.setdefault("JAX_COMPILATION_CACHE_DIR", str(compiled))
        start_time = Path(folder).stat().st_mtime
        try:
            _run_process(task, environment)
        except BaseException:  # Ctrl-C kills the process, too
            _remove_newer(compiled, start_time)
            raise
        finally:
            limit_size(compiled, _COMPILED_BYTES)
        return TrainedWeights.load(result)


def _run_process(task: JaxJob, environment: Mapping[str, str]) -> None:
    """Run the process that trains, alone or with other workers."""
    content, training = task.model_dump_json(), task.job.config.training
    if training.devices == "workers":
        distributed_worker.report_wait(training.backend)
        distributed_worker.run_process(JAX_PROCESS, content, environment)
    else:
        job_process.run_process(JAX_PROCESS, content, "trains on JAX", environment)


def _remove_newer(folder: Path, start_time: float) -> None:
    """Delete the files that were written since a process started that was killed.

    JAX never replaces a program of which a killed process has written a part.
    """
    for file, change_time, _ in _files_of(folder):
        if change_time >= start_time:
            file.unlink(missing_ok=True)


def limit_size(folder: Path, most: int) -> None:
    """Delete the oldest files below a folder until at most this number of bytes is left."""
    left = 0
    for file, _, size in sorted(_files_of(folder), key=lambda entry: entry[1], reverse=True):
        left += size
        if left > most:
            file.unlink(missing_ok=True)


def _files_of(folder: Path) -> Iterator[tuple[Path, float, int]]:
    """Yield the files below a folder with the time of their last change and their bytes."""
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # another run deletes files too
            status = path.stat()
            if stat.S_ISREG(status.st_mode):
                yield path, status.st_mtime, status.st_size


def _save_start(job: TrainingJob, folder: Path) -> tuple[str, str]:
    """Save the model to start from for the process on JAX.

    Only that process knows the precision of its device, which is a part of the name of its
    checkpoints, and with checkpoints it does not need the model.

    Returns:
        The file, and why the model cannot be read; both empty if the training starts from none.

    Raises:
        UserError: the model cannot be read, and there are no checkpoints of any precision.
    """
    if job.run.start is None or not job.config.training.warm_start:
        return "", ""
    key = job.run.checkpoint_folder
    try:
        start = read_starting_model(job.run.start)
    except UserError as error:
        if any(Checkpoints(path).exists() for path in key.parent.glob(f"{key.name}*")):
            return "", error.message
        raise
    file = folder / "start.npz"
    start.save(file)
    return str(file), ""


def rebuild(trained: TrainedWeights) -> TrainingResult:
    """Return the result of a training with its model on the backend of this process.

    Raises:
        RuntimeError: the model computes another loss than the one that was trained.
    """
    job = trained.job
    inputs = read_inputs(job.config, job.data, None, report=False)
    inputs = inputs.with_batch_tokens(int(str(trained.record["batch_tokens"])))
    model = build_model(job.config, inputs)
    compile_model(model, job.config.training)
    for variable, value in zip(model.weights, trained.weights, strict=True):
        variable.assign(value)
    if trained.adam_moments:
        restore_optimizer_state(model.optimizer, trained.updates, trained.adam_moments)
    else:
        set_updates(model.optimizer, trained.updates)
    result = TrainingResult(
        job=job,
        network=inputs.network,
        model=model,
        state=trained.state,
        eval_batches=inputs.eval,
        sentencepiece_models=inputs.sentencepiece_models,
        devices=trained.devices,
        record=trained.record,
    )
    loss = checked_loss(result)
    if not np.isclose(loss, trained.loss, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True):
        raise RuntimeError(
            "The model that was trained on JAX has another loss on the first eval batch: "
            f"{trained.loss:.6f} there, {loss:.6f} on {keras.backend.backend()}. Report this bug."
        )
    return result
