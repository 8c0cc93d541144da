"""The devices and processes that share a training, as its loop sees them."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from regard.components.trainer.batches import Sharing
from regard.models.trainable_model import TrainableModel


class DeviceGroup(ABC):
    """All devices of a training, some of them in this process.

    Attributes:
        worker: the index of this process; 0 is the chief.
        workers: the number of processes.
        local_devices: the number of devices of each process.
    """

    def __init__(self, worker: int, workers: int, local_devices: int):
        self.worker, self.workers, self.local_devices = worker, workers, local_devices

    @property
    def is_chief(self) -> bool:
        """Whether this process evaluates, writes and reports."""
        return self.worker == 0

    @property
    def size(self) -> int:
        """The number of devices of all workers."""
        return self.workers * self.local_devices

    @property
    def sharing(self) -> Sharing:
        """How the devices share each batch."""
        return Sharing(self.worker, self.workers, self.local_devices)

    @abstractmethod
    def broadcast(self, value: np.ndarray) -> np.ndarray:
        """Return the chief's array in every worker; all workers pass equal shapes and types."""

    @abstractmethod
    def disconnect(self) -> None:
        """Leave the group after the last step, so that this process can continue alone."""

    def broadcast_object(self, compute: Callable[[], Any]) -> Any:
        """Return the result of ``compute``, which only the chief calls, in every worker.

        Args:
            compute: returns JSON values.
        """
        if self.workers == 1:
            return compute()
        content = json.dumps(compute()).encode() if self.is_chief else b""
        length = int(self.broadcast(np.array(len(content), np.int32)))
        buffer = self.broadcast(np.frombuffer(content or bytes(length), np.uint8))
        return json.loads(buffer.tobytes())


class SharedTrainStep(ABC):
    """A training step that the devices of a group take together.

    Attributes:
        group: the devices.
    """

    group: DeviceGroup

    @abstractmethod
    def initialize(self) -> None:
        """Copy the chief's state to all devices, and let Keras's ``fit`` call this step."""


def offset_seeds(model: TrainableModel, number: int) -> None:
    """Give device ``number`` random numbers of its own, the same after a resume."""
    for variable in model.variables:
        if variable.name == "seed_generator_state":  # a seed, and a counter that all share
            state = np.array(keras.ops.convert_to_numpy(variable))
            state[0] += number
            variable.assign(state)
