"""A training on Keras's JAX backend, in a process of its own.

The process of the pipeline computes with TensorFlow, and Keras has one backend in a process. So
another process trains (``jax_job``), without TensorFlow, and leaves its weights and its state in a
file. The process of the pipeline builds the model again on TensorFlow, with these weights, and
exports it as one that it has trained itself.
"""

import contextlib
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

import keras
import numpy as np

from regard.components.settings.trainer import TrainingJob
from regard.components.trainer import distributed_worker, job_process
from regard.components.trainer.checkpoint import Checkpoints
from regard.components.trainer.distributed_worker import JAX_PROCESS
from regard.components.trainer.jax_job import JaxJob, TrainedWeights, checked_loss
from regard.components.trainer.optimizer import compile_model
from regard.components.trainer.optimizer_state import adam_moments
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
        ProcessExit: the process ended without a message.
    """
    if importlib.util.find_spec("jax") is None:
        remedy = 'Run: pip install "regard[jax]", or "regard[jax-cuda]" for NVIDIA GPUs.'
        raise UserError("JAX is not installed.", "training.backend: jax", remedy)
    training = job.config.training
    if training.devices == "workers":
        distributed_worker.check_chief(os.environ)
    checkpoints = job.run.checkpoint_folder
    Checkpoints(checkpoints).create_folder()
    compiled = checkpoints.parent / _COMPILED
    _remove_leftovers(checkpoints, compiled)
    with tempfile.TemporaryDirectory(prefix=_TEMPORARY, dir=checkpoints) as folder:
        result = Path(folder, "result.npz")
        task = JaxJob(
            job=job, start=_save_start(job, Path(folder)), result=str(result), objective=objective
        )
        environment = job_process.jax_environment(os.environ, training.deterministic)
        # Here JAX keeps what XLA has compiled for later runs.
        environment.setdefault("JAX_COMPILATION_CACHE_DIR", str(compiled))
        if training.devices == "workers":
            distributed_worker.run_process(JAX_PROCESS, task.model_dump_json(), environment)
        else:
            job_process.run_process(
                JAX_PROCESS, task.model_dump_json(), "trains on JAX", environment
            )
        limit_size(compiled, _COMPILED_BYTES)
        return TrainedWeights.load(result)


def _remove_leftovers(checkpoints: Path, compiled: Path) -> None:
    """Remove what a killed run has left behind.

    JAX does not replace a program of which it had written a part, so the programs go too.
    """
    leftovers = list(checkpoints.glob(f"{_TEMPORARY}*"))
    for folder in [*leftovers, compiled] if leftovers else []:
        shutil.rmtree(folder, ignore_errors=True)


def limit_size(folder: Path, most: int) -> None:
    """Delete the oldest files of a folder until at most this number of bytes is left."""
    with contextlib.suppress(OSError):  # another run deletes files too
        files = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        size = 0
        for file in files:
            size += file.stat().st_size
            if size > most:
                file.unlink(missing_ok=True)


def _save_start(job: TrainingJob, folder: Path) -> str:
    """Save the model to start from for the process on JAX; empty if there is none.

    The process knows the precision of its device, which is a part of the name of its checkpoints.
    With any checkpoints of this training, the model is not necessary, and may be gone.
    """
    if job.run.start is None or not job.config.training.warm_start:
        return ""
    key = job.run.checkpoint_folder
    try:
        start = read_starting_model(job.run.start)
    except UserError:
        if any(Checkpoints(path).exists() for path in key.parent.glob(f"{key.name}*")):
            return ""
        raise
    file = folder / "start.npz"
    start.save(file)
    return str(file)


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
        variables = adam_moments(model.optimizer)
        for variable, value in zip(variables, trained.adam_moments, strict=True):
            variable.assign(value)
    model.optimizer.iterations.assign(trained.updates)
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
