"""Several processes that train together on JAX, each with its own devices.

Each process computes with a model of its own, on its part of every batch; only the sum of what the
parts contribute is a computation of all processes. So the chief evaluates, decodes and writes
alone, as it does on TensorFlow.
"""

from collections import Counter
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from regard.components.trainer.backends.jax_step import (
    BatchResult,
    TrainingState,
    compute_batch,
    update,
)
from regard.components.trainer.batches import Sharing
from regard.components.trainer.device_group import DeviceGroup, SharedTrainStep, offset_seeds
from regard.core.errors import EnvironmentFault
from regard.models.trainable_model import TrainableModel

# The workers may start long before the chief, which prepares the data first; and the last
# evaluation of the chief may take long.
_WAIT_SECONDS = 24 * 3600
_AXIS = "worker"


class ProcessGroup(DeviceGroup):
    """The processes that ``jax.distributed`` has connected."""

    def __init__(self) -> None:
        super().__init__(jax.process_index(), jax.process_count(), jax.local_device_count())
        first_devices: dict[int, jax.Device] = {}
        for device in jax.devices():
            first_devices.setdefault(device.process_index, device)
        devices = [first_devices[process] for process in range(self.workers)]
        mesh = Mesh(np.array(devices), (_AXIS,))
        self._parts = NamedSharding(mesh, PartitionSpec(_AXIS))
        self._add = jax.jit(
            lambda parts: parts.sum(axis=0, dtype=parts.dtype),
            out_shardings=NamedSharding(mesh, PartitionSpec()),
        )

    @property
    def sharing(self) -> Sharing:
        """How the processes share each batch; Keras divides a part among local devices."""
        return Sharing(self.worker, self.workers)

    def sum(self, value: jax.Array) -> jax.Array:
        """Return the sum of the processes' arrays on the first device of this process.

        Args:
            value: all processes pass one of equal shape and type.
        """
        part = jax.device_put(value[None], jax.local_devices()[0])
        shape = (self.workers, *value.shape)
        parts = jax.make_array_from_single_device_arrays(shape, self._parts, [part])
        return self._add(parts).addressable_data(0)

    def disconnect(self) -> None:
        jax.distributed.shutdown()  # waits for all processes

    def broadcast(self, value: np.ndarray) -> np.ndarray:
        # The sum of the chief's bytes and the zeros of the others.
        content = np.frombuffer(value.tobytes(), np.uint8)
        content = content if self.is_chief else np.zeros_like(content)
        total = np.asarray(self.sum(jax.numpy.asarray(content)))
        return np.frombuffer(total.tobytes(), value.dtype).reshape(value.shape)


def connect_processes(coordinator: str, worker: int, workers: int) -> ProcessGroup:
    """Wait for the other processes; call it before any computation of JAX.

    Args:
        coordinator: ``HOST:PORT`` of the chief.
        worker: the index of this process; 0 is the chief.
        workers: the number of processes.

    Raises:
        UserError: the processes have unequal numbers of devices.
    """
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        coordinator,
        workers,
        worker,
        initialization_timeout=_WAIT_SECONDS,
        shutdown_timeout_seconds=_WAIT_SECONDS,
    )
    devices = Counter(device.process_index for device in jax.devices())
    if len(set(devices.values())) > 1:
        counts = ", ".join(f"worker {process}: {devices[process]}" for process in sorted(devices))
        raise EnvironmentFault(
            f"The workers have unequal numbers of devices ({counts}).",
            where="training.devices: workers",
            remedy="Set CUDA_VISIBLE_DEVICES, so that each has as many as the others.",
        )
    return ProcessGroup()


class SharedJaxStep(SharedTrainStep):
    """One training step of several processes, equal to one process's step on all of their rows.

    The optimizer gets the gradient Σ n_p g_p / Σ n_p, where n_p is the number of units (target
    tokens, or rows) of process p, and g_p the gradient of their mean loss. Floating-point values
    that are not trained (moving means) change by the weighted mean of the processes' changes.

    Args:
        group: the processes.
        model: the compiled model.
    """

    group: ProcessGroup

    def __init__(self, group: ProcessGroup, model: TrainableModel):
        self.group, self._model = group, model
        self._contribute = jax.jit(self._contribution)
        self._update = jax.jit(self._updated, donate_argnums=0)

    def initialize(self) -> None:
        for variable in (*self._model.variables, *self._model.optimizer.variables):
            variable.assign(self.group.broadcast(np.asarray(variable.value)))
        offset_seeds(self._model, self.group.worker)
        self._model.train_function = self._train

    def _train(self, values: Any, batches: Any) -> tuple[Any, Any]:
        """Train on the next batch; Keras's ``fit`` calls it with the values of the variables."""
        state = TrainingState(*values)
        flat, random_state = self._contribute(state, next(batches))
        total = jax.device_put(self.group.sum(flat), flat.sharding)
        return self._update(state, total, random_state)

    def _contribution(self, state: TrainingState, data: Any) -> tuple[jax.Array, list[Any]]:
        """Return what the sum is made of as a vector, and the random state of this process."""
        batch = compute_batch(self._model, state, data)
        floats, others = _split(batch.non_trainable)
        before, _ = _split(state.non_trainable)
        changes = [batch.units * (new - old) for new, old in zip(floats, before, strict=True)]
        gradients = [batch.units * gradient for gradient in batch.gradients]
        flat, _ = ravel_pytree((batch.units, gradients, changes, batch.sums))
        return flat, others

    def _updated(
        self, state: TrainingState, total: jax.Array, random_state: list[Any]
    ) -> tuple[Any, Any]:
        """Update the values with the sum of all vectors."""
        floats, _ = _split(state.non_trainable)
        template = (jax.numpy.zeros(()), state.trainable, floats, state.metrics)
        units, gradients, changes, sums = ravel_pytree(template)[1](total)
        scale = 1.0 / jax.numpy.maximum(units, 1.0)
        floats = [old + scale * change for old, change in zip(floats, changes, strict=True)]
        batch = BatchResult(
            units=units,
            gradients=[scale * gradient for gradient in gradients],
            non_trainable=_joined(state.non_trainable, floats, random_state),
            sums=sums,
        )
        return update(self._model, state, batch)


def _split(values: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return the values that are floating-point numbers, and the others."""
    floats = [value for value in values if _is_float(value)]
    return floats, [value for value in values if not _is_float(value)]


def _joined(values: list[Any], floats: list[Any], others: list[Any]) -> list[Any]:
    """Return new values in the order of old ones, of which ``_split`` has made two lists."""
    remaining_floats, remaining_others = iter(floats), iter(others)
    return [next(remaining_floats if _is_float(v) else remaining_others) for v in values]


def _is_float(value: Any) -> bool:
    return jax.numpy.issubdtype(value.dtype, jax.numpy.floating)
