"""The job of the process that trains on JAX, and what it leaves behind. It needs no TensorFlow."""

import dataclasses
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from regard.components.settings.trainer import NODE, TrainingJob
from regard.components.trainer import worker_connection
from regard.components.trainer.backends import current_backend
from regard.components.trainer.checkpoint import Checkpoints, TrainState
from regard.components.trainer.device_group import DeviceGroup
from regard.components.trainer.epoch_plan import COARSE_GROWTH
from regard.components.trainer.optimizer_state import adam_moments
from regard.components.trainer.train import TrainingResult, train
from regard.components.trainer.validation import LOSS
from regard.components.trainer.warm_start import start_error
from regard.components.trainer.warm_start_checkpoint import WarmStartCheckpoint, numbered_arrays
from regard.core import events
from regard.core.files import atomic_path
from regard.models.trainable_model import TrainableModel


class JaxJob(BaseModel):
    """What the process that trains on JAX receives.

    Attributes:
        job: the training.
        start: the file of the model to start from; empty for none.
        start_problem: why the model to start from could not be read; empty if it could. With
            checkpoints, the training does not need it.
        result: the file that the process writes.
        objective: as in ``train``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    job: TrainingJob
    start: str = ""
    start_problem: str = ""
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
        updates: the updates of the optimizer.
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
        with atomic_path(path) as temporary, open(temporary, "wb") as file:
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


def train_job(content: str) -> None:
    """Train in this process, and write ``TrainedWeights``.

    Args:
        content: a ``JaxJob`` as JSON; empty in a worker that is not the chief, which receives the
            training from the chief and writes nothing.

    Raises:
        UserError: an error of the training, or the connection to a worker is lost.
    """
    task = JaxJob.model_validate_json(content) if content else None
    if task is not None and task.job.config.training.devices != "workers":
        _train_as_chief(task, None)
        return
    with worker_connection.connect(current_backend()) as group:
        job = worker_connection.share_job(group, task.job if task else None)
        if task is None:
            _warn_about_missing_libraries()
            train(job, group)
        else:
            _train_as_chief(task.model_copy(update={"job": job}), group)


def _train_as_chief(task: JaxJob, group: DeviceGroup | None) -> None:
    """Train with the devices of a group, or alone, and write ``TrainedWeights``."""

    _warn_about_missing_libraries()

    def start(job: TrainingJob) -> WarmStartCheckpoint | None:
        if task.start_problem and not Checkpoints(job.run.checkpoint_folder).exists():
            raise start_error(task.start_problem)
        return WarmStartCheckpoint.load(Path(task.start)) if task.start else None

    result = train(task.job, group, objective=task.objective, start=start)
    if not isinstance(result, TrainingResult):
        raise TypeError("This process is not the chief.")
    # A later training may continue from the state of the optimizer.
    warm_start = task.job.config.training.warm_start
    keeps_moments = warm_start is not None and warm_start.optimizer
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


def _warn_about_missing_libraries() -> None:
    if not current_backend().has_gpu and shutil.which("nvidia-smi"):
        text = "JAX trains on the CPU, for it has no libraries for the GPU: see regard doctor"
        events.emit("warning", node=NODE, text=text)


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
    backend = current_backend()
    model.compile(jit_compile=backend.always_compiles)
    # The same rows on every backend.
    batches = dataclasses.replace(result.eval_batches, growth=COARSE_GROWTH, fixed_shapes=True)
    first = backend.data(batches).epoch(numbers=np.array([0]))
    with backend.exact_products():
        results = model.evaluate(first, verbose=0, return_dict=True)
    return float(model.evaluation_metrics(results)["loss"])
