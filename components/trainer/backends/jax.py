"""Training on JAX. Nothing here, or below, imports TensorFlow."""

import contextlib
import functools
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast

import jax
import keras
import numpy as np

from regard.components.trainer.backends.base import EpochData, TrainingBackend
from regard.components.trainer.backends.jax_group import (
    ProcessGroup,
    SharedJaxStep,
    connect_processes,
)
from regard.components.trainer.backends.jax_step import train_step
from regard.components.trainer.batches import Batches
from regard.components.trainer.device_group import DeviceGroup, SharedTrainStep
from regard.components.trainer.unit_weighting import UnitWeighting
from regard.models.tasks.network import Batch, BatchDecoder
from regard.models.trainable_model import TrainableModel

_PREFETCHED_BATCHES = 4
_STEPS_AHEAD = 2
# The statuses of errors that name a lost connection; others name it in their text.
_LOST = ("UNAVAILABLE", "ABORTED", "CANCELLED", "DEADLINE_EXCEEDED")


class JaxBackend(TrainingBackend):
    """Training on JAX: XLA compiles one step for each shape of a batch."""

    always_compiles = True

    def data(self, batches: Batches) -> "JaxData":
        return JaxData(batches)

    def adam(self, decoupled: bool = False) -> type[keras.optimizers.Optimizer]:
        return JaxAdamW if decoupled else JaxAdam

    def prepare(self, model: TrainableModel) -> None:
        model.train_step = functools.partial(train_step, model)

    def compile_decoder(
        self, model: TrainableModel, decoder: BatchDecoder, batches: Batches
    ) -> Callable[..., np.ndarray]:
        @jax.jit
        def compute(values: Sequence[jax.Array], *inputs: jax.Array) -> jax.Array:
            with keras.StatelessScope(list(zip(model.variables, values, strict=True))):
                return decoder.compute(*inputs)

        def run(*inputs: np.ndarray) -> np.ndarray:
            values = [variable.value for variable in model.variables]
            return np.asarray(compute(values, *map(_shared, inputs)))

        return run

    def compute_capabilities(self) -> Sequence[tuple[int, int]]:
        devices = [device for device in jax.local_devices() if device.platform == "gpu"]
        return [_compute_capability(device) for device in devices]

    def use_devices(self, devices: str) -> None:
        distribution = None
        local = [f"{device.platform}:{device.id}" for device in jax.local_devices()]
        if devices != "one" and len(local) > 1:
            distribution = keras.distribution.DataParallel(devices=local, auto_shard_dataset=False)
        keras.distribution.set_distribution(distribution)

    @property
    def devices(self) -> int:
        distribution = keras.distribution.distribution()
        return distribution.device_mesh.devices.size if distribution is not None else 1

    def connect_workers(self, addresses: Sequence[str], worker: int) -> DeviceGroup:
        return connect_processes(addresses[0], worker, len(addresses))

    def is_connection_error(self, error: Exception) -> bool:
        if not isinstance(error, jax.errors.JaxRuntimeError):
            return False
        text = str(error)
        return text.startswith(_LOST) or "Gloo" in text or "NCCL" in text

    def is_out_of_memory(self, error: Exception) -> bool:
        return isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" in str(error)

    def make_deterministic(self) -> None:
        """Do nothing: the process was started with the option of XLA, see ``jax_training``."""

    def callbacks(
        self, callbacks: Sequence[keras.callbacks.Callback], model: TrainableModel
    ) -> keras.callbacks.CallbackList:
        return _LaggingCallbacks(callbacks, model)

    def shared_step(
        self, group: DeviceGroup, model: TrainableModel, build: Callable[[], TrainableModel]
    ) -> SharedTrainStep:
        return SharedJaxStep(cast(ProcessGroup, group), model)

    def exact_products(self) -> contextlib.AbstractContextManager[None]:
        return jax.default_matmul_precision("float32")

    def synchronize(self, model: TrainableModel) -> None:
        model.jax_state_sync()


def _shared(rows: np.ndarray) -> Any:
    """Divide an input among the devices that train together."""
    distribution = keras.distribution.distribution()
    if distribution is None:
        return rows
    layout = distribution.get_data_layout(rows.shape)
    return keras.distribution.distribute_tensor(rows, layout)


def _compute_capability(device: Any) -> tuple[int, int]:
    major, _, minor = str(getattr(device, "compute_capability", "0.0")).partition(".")
    return int(major), int(minor or 0)


class JaxData(EpochData):
    """The batches of a split as a ``PyDataset``.

    Args:
        batches: the batches as NumPy arrays.
    """

    def __init__(self, batches: Batches):
        self._batches = batches
        self._evaluation: list[Batch] = []
        self._reader = ThreadPoolExecutor(1, "batches")

    def epoch(
        self, number: int | None = None, skip: int = 0, numbers: np.ndarray | None = None
    ) -> "_PrefetchedBatches":
        count = self._batches.plan(number)
        numbers = np.arange(skip, count) if numbers is None else numbers
        read = functools.partial(self._batches.read_local, number)
        return _PrefetchedBatches(read, numbers, self._reader)

    def evaluation(self) -> "_StoredBatches":
        if not self._evaluation:
            count = self._batches.plan(None)
            self._evaluation = [self._batches.read(None, number) for number in range(count)]
        return _StoredBatches(self._evaluation)


class _StoredBatches(keras.utils.PyDataset):
    """Batches in memory."""

    def __init__(self, batches: Sequence[Batch]):
        super().__init__()
        self._batches = batches

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, index: int) -> Batch:
        return self._batches[index]


class _PrefetchedBatches(keras.utils.PyDataset):
    """Batches that a thread reads while the device computes; Keras asks for them in their order.

    Args:
        read: returns the batch of a number.
        numbers: the numbers of the batches.
        reader: the thread.
    """

    def __init__(
        self, read: Callable[[int], Batch], numbers: np.ndarray, reader: ThreadPoolExecutor
    ):
        super().__init__()
        self._read, self._numbers, self._reader = read, numbers, reader
        self._pending: deque[Future[Batch]] = deque()
        self._next = 0  # the index of the first batch that is not requested yet

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int) -> Batch:
        if index + len(self._pending) != self._next:  # the first batch, or not in order
            for future in self._pending:
                future.cancel()
            self._pending.clear()
            self._next = index
        while self._next < min(index + _PREFETCHED_BATCHES, len(self)):
            self._pending.append(self._reader.submit(self._read, int(self._numbers[self._next])))
            self._next += 1
        return self._pending.popleft().result()


class _JaxUnitWeighting(UnitWeighting):
    """``UnitWeighting`` as a function of values, which ``jax_step`` calls."""

    def build(self, variables: list[Any]) -> None:
        super().build(variables)
        if self.gradient_accumulation_steps:
            adam: Any = self
            self.batch_units = adam.add_variable((), name="batch_units")

    def units_of_batch(self) -> Any:
        return self.batch_units.value

    def stateless_apply(
        self, optimizer_variables: Any, grads: Any, trainable_variables: Any
    ) -> tuple[list[Any], list[Any]]:
        """Return the new values of weights and optimizer, as Keras's method of this name.

        With LoRA, the weights of the model are not those that the optimizer was built with.
        """
        adam: Any = self
        kernels = self.adapters.kernels if self.adapters else adam._trainable_variables
        variables = [*kernels, *adam.variables]
        values = [*trainable_variables, *optimizer_variables]
        with keras.StatelessScope(list(zip(variables, values, strict=True))) as scope:
            adam.apply(grads)
        updated = [scope.get_current_value(variable) for variable in variables]
        return updated[: len(kernels)], updated[len(kernels) :]


class JaxAdam(_JaxUnitWeighting, keras.optimizers.Adam):
    """Kingma & Ba 2015, "Adam: A Method for Stochastic Optimization", as in Keras."""


class JaxAdamW(_JaxUnitWeighting, keras.optimizers.AdamW):
    """Loshchilov & Hutter 2019, "Decoupled Weight Decay Regularization", as in Keras."""


class _LaggingCallbacks(keras.callbacks.CallbackList):
    """Callbacks that run while the device still computes the last steps.

    Keras waits for the logs of a step before it starts the next one, so that the device is idle
    meanwhile. Here it waits for those of an earlier step, which bounds the number of batches on
    their way.
    """

    def __init__(self, callbacks: Sequence[keras.callbacks.Callback], model: TrainableModel):
        super().__init__(list(callbacks), add_history=True, model=model)
        self._running: deque[Any] = deque()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._running.append(logs)
        if len(self._running) > _STEPS_AHEAD:
            jax.block_until_ready(self._running.popleft())
        for callback in self.callbacks:
            callback.on_train_batch_end(batch)
