"""A training on Keras's JAX backend, in a process of its own.

The process of the pipeline computes with TensorFlow, and Keras has one backend in a process. So
another process trains (``train_job``), without TensorFlow, and leaves its weights and its state in
a file. The process of the pipeline builds the model again on TensorFlow, with these weights, and
exports it as one that it has trained itself.
"""

import dataclasses
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
from pydantic import BaseModel, ConfigDict

from regard.components.settings.trainer import TrainingJob
from regard.components.trainer import job_process
from regard.components.trainer.backends import current_backend
from regard.components.trainer.checkpoint import TrainState
from regard.components.trainer.epoch_plan import COARSE_GROWTH
from regard.components.trainer.optimizer import compile_model
from regard.components.trainer.optimizer_state import adam_moments
from regard.components.trainer.train import TrainingResult, build_model, train
from regard.components.trainer.training_inputs import read_inputs
from regard.components.trainer.validation import LOSS
from regard.components.trainer.warm_start_checkpoint import WarmStartCheckpoint, numbered_arrays
from regard.models.trainable_model import TrainableModel

_MODULE = "regard.components.trainer.jax_process"
_COMPILED = "compiled"  # the folder of XLA's programs, next to the folders of checkpoints
# float32 sums in another order, over all layers.
_TOLERANCE = 1e-3


class JaxJob(BaseModel):
    """What the process that trains on JAX receives.

    Attributes:
        job: the training.
        start: the file of the model to start from; empty for none.
        result: the file that the process writes.
        objective: as in ``train``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    job: TrainingJob
    start: str = ""
    result: str
    objective: str = LOSS


@dataclass(frozen=True)
class TrainedWeights:
    """What the process leaves behind.

    Attributes:
        job: the training, with the precision of its device.
        state: its final state.
        record: the part of ``training.json`` that is known before the training.
        devices: the number of devices that have trained.
        updates: the updates of the optimizer, in batches.
        loss: the loss of the first eval batch in float32, which the rebuilt model must have.
        weights: in the order of the model.
        adam_moments: Adam's moments; empty unless a later training may continue from them.
    """

    job: TrainingJob
    state: TrainState
    record: Mapping[str, object]
    devices: int
    updates: int
    loss: float
    weights: Sequence[np.ndarray]
    adam_moments: Sequence[np.ndarray]

    def save(self, path: Path) -> None:
        """Write everything into one file."""
        about = {
            "job": self.job.model_dump(mode="json"),
            "state": dataclasses.asdict(self.state),
            "record": self.record,
            "devices": self.devices,
            "updates": self.updates,
            "loss": self.loss,
        }
        arrays = {f"weight/{i}": weight for i, weight in enumerate(self.weights)}
        arrays |= {f"moment/{i}": moment for i, moment in enumerate(self.adam_moments)}
        with open(path, "wb") as file:
            np.savez(file, allow_pickle=False, about=np.array(json.dumps(about)), **arrays)

    @classmethod
    def load(cls, path: Path) -> "TrainedWeights":
        """Read what ``save`` has written."""
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            return cls(
                job=TrainingJob.model_validate(about["job"]),
                state=TrainState(**about["state"]),
                record=about["record"],
                devices=about["devices"],
                updates=about["updates"],
                loss=about["loss"],
                weights=numbered_arrays(file, "weight"),
                adam_moments=numbered_arrays(file, "moment"),
            )


def train_on_jax(
    job: TrainingJob, start: WarmStartCheckpoint | None = None, objective: str = LOSS
) -> TrainingResult:
    """Train in another process on JAX, and return the model on TensorFlow.

    Args:
        job: what to train.
        start: the model to start from; None for random weights, or to resume.
        objective: as in ``train``.

    Raises:
        UserError: JAX is not installed, or an error of the training.
        RuntimeError: the process ended without a message, or the rebuilt model computes another
            loss.
    """
    parent = job.run.checkpoint_folder.parent
    with tempfile.TemporaryDirectory(prefix=".jax-", dir=parent) as folder:
        start_file, result_file = Path(folder, "start.npz"), Path(folder, "result.npz")
        if start is not None:
            start.save(start_file)
        task = JaxJob(
            job=job,
            start=str(start_file) if start is not None else "",
            result=str(result_file),
            objective=objective,
        )
        environment = jax_environment(job, os.environ, parent / _COMPILED)
        job_process.run_process(
            _MODULE, task.model_dump_json(), "trains on JAX", environment=environment
        )
        return rebuild(TrainedWeights.load(result_file))


def jax_environment(
    job: TrainingJob, environment: Mapping[str, str], compiled: Path
) -> dict[str, str]:
    """Return the environment variables of the process that trains on JAX.

    Args:
        job: what to train.
        environment: the variables of this process.
        compiled: the folder in which JAX keeps what XLA has compiled for later runs.
    """
    flags = [environment.get("XLA_FLAGS", "")]
    if job.config.training.deterministic:
        flags.append("--xla_gpu_deterministic_ops=true")
    return {
        "JAX_COMPILATION_CACHE_DIR": str(compiled),
        # Small models compile many programs of less than the second that JAX keeps by default.
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
        # As for TensorFlow, the memory of a GPU grows on demand.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        **environment,
        "KERAS_BACKEND": "jax",
        "XLA_FLAGS": " ".join(filter(None, flags)),
    }


def train_job(content: str) -> None:
    """Train in this process, and write ``TrainedWeights``.

    Args:
        content: a ``JaxJob`` as JSON.
    """
    task = JaxJob.model_validate_json(content)
    start = WarmStartCheckpoint.load(Path(task.start)) if task.start else None
    result = train(task.job, objective=task.objective, start=start)
    if not isinstance(result, TrainingResult):
        raise TypeError("A process that trains alone is the chief.")
    # A later training may continue from the state of the optimizer.
    keeps_moments = task.job.config.training.warm_start is not None
    variables = adam_moments(result.model.optimizer) if keeps_moments else []
    TrainedWeights(
        job=result.job,
        state=result.state,
        record=result.record,
        devices=result.devices,
        updates=int(result.model.optimizer.iterations),
        loss=checked_loss(result),
        weights=[np.asarray(weight) for weight in result.model.weights],
        adam_moments=[np.asarray(moment) for moment in variables],
    ).save(Path(task.result))


def rebuild(trained: TrainedWeights) -> TrainingResult:
    """Return the result of a training with its model on the backend of this process.

    Raises:
        RuntimeError: the model computes another loss than the one that was trained.
    """
    job = trained.job
    inputs = read_inputs(job.config, job.data, None)
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
    if not abs(loss - trained.loss) <= _TOLERANCE * max(1.0, abs(trained.loss)):
        raise RuntimeError(
            "The model that was trained on JAX has another loss on the first eval batch: "
            f"{trained.loss:.6f} there, {loss:.6f} on {keras.backend.backend()}. Report this bug."
        )
    return result


def checked_loss(result: TrainingResult) -> float:
    """Return the loss of the first eval batch, computed in float32.

    Args:
        result: a training with its model on the backend of this process.
    """
    config = result.job.config
    settings = config.training.model_copy(update={"precision": "float32"})
    sizes: Any = result.record["vocabulary_sizes"]
    model: TrainableModel = result.network.build(config.model, settings, sizes)
    model.set_weights(result.model.get_weights())
    model.compile(jit_compile=False)
    # The same rows on every backend.
    batches = dataclasses.replace(result.eval_batches, growth=COARSE_GROWTH, fixed_shapes=True)
    first = current_backend().data(batches).epoch(numbers=np.array([0]))
    results = model.evaluate(first, verbose=0, return_dict=True)
    return float(model.evaluation_metrics(results)["loss"])
