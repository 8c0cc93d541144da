"""The interface of a backend."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from regard.components.trainer.batches import Batches
from regard.components.trainer.device_group import DeviceGroup, SharedTrainStep
from regard.models.tasks.network import BatchDecoder
from regard.models.trainable_model import TrainableModel


class EpochData(ABC):
    """The batches of a split as Keras's ``fit`` and ``evaluate`` take them."""

    @abstractmethod
    def epoch(
        self, number: int | None = None, skip: int = 0, numbers: np.ndarray | None = None
    ) -> Any:
        """Return the batches of one epoch.

        Args:
            number: the epoch, from 0, which seeds the order; None for the order of evaluation.
            skip: the number of batches to skip, which an interrupted run has trained on.
            numbers: the numbers of the batches; None for all.
        """

    @abstractmethod
    def evaluation(self) -> Any:
        """Return the batches in the order of evaluation; the second reading is from memory."""


class TrainingBackend(ABC):
    """What depends on the library that Keras computes with.

    Attributes:
        always_compiles: whether XLA compiles every step, so that batches must have few shapes.
    """

    always_compiles: bool

    @abstractmethod
    def data(self, batches: Batches) -> EpochData:
        """Return the batches of a split for Keras."""

    @abstractmethod
    def adam(self, decoupled: bool = False) -> type[keras.optimizers.Optimizer]:
        """Return the class of Adam, or of AdamW with a decoupled weight decay.

        It is a subclass of ``UnitWeighting``.
        """

    @abstractmethod
    def prepare(self, model: TrainableModel) -> None:
        """Change a compiled model as its training needs it."""

    @abstractmethod
    def compile_decoder(
        self, model: TrainableModel, decoder: BatchDecoder, batches: Batches
    ) -> Callable[..., np.ndarray]:
        """Return ``decoder.compute``, compiled, of NumPy arrays.

        Args:
            model: the model of the decoder; its weights may change between calls.
            decoder: computes what outputs are made of.
            batches: of which it decodes some.
        """

    @abstractmethod
    def compute_capabilities(self) -> Sequence[tuple[int, int]]:
        """Return the CUDA compute capability of each GPU, (0, 0) if it has none."""

    @abstractmethod
    def use_devices(self, devices: str) -> None:
        """Let the models that this process builds from now on share their batches among devices.

        Args:
            devices: the setting ``training.devices``.
        """

    @property
    @abstractmethod
    def devices(self) -> int:
        """The number of devices that share each batch of a training without a group."""

    @abstractmethod
    def connect_workers(self, addresses: Sequence[str], worker: int) -> DeviceGroup:
        """Wait for the other workers; call it before any computation.

        Args:
            addresses: ``HOST:PORT`` of every worker; the first is the chief's.
            worker: the index of this process.
        """

    @abstractmethod
    def is_connection_error(self, error: Exception) -> bool:
        """Return whether an error means that the connection to another worker is lost."""

    @abstractmethod
    def is_out_of_memory(self, error: Exception) -> bool:
        """Return whether an error of a training step means that its batch is too large."""

    @abstractmethod
    def make_deterministic(self) -> None:
        """Let sums keep a fixed order in the whole process."""

    @abstractmethod
    def callbacks(
        self, callbacks: Sequence[keras.callbacks.Callback], model: TrainableModel
    ) -> Any:
        """Return callbacks as ``fit`` takes them; none of them reads the logs of a step."""

    @abstractmethod
    def shared_step(
        self, group: DeviceGroup, model: TrainableModel, build: Callable[[], TrainableModel]
    ) -> SharedTrainStep:
        """Return the training step of a group of devices.

        Args:
            group: the devices.
            model: the compiled model.
            build: creates another model of the same architecture.
        """

    @abstractmethod
    def exact_products(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which GPUs multiply float32 without rounding to TF32."""

    @abstractmethod
    def synchronize(self, model: TrainableModel) -> None:
        """Write the state of a running ``fit`` into the variables, before they are read."""

    @property
    def has_gpu(self) -> bool:
        """Whether the process sees a GPU."""
        return bool(self.compute_capabilities())
