"""The devices that train one model together, and what they tell each other.

Keras's own ``fit`` under ``tf.distribute`` cannot be used: its optimizers clip the gradients of
each device before they are summed, and cannot accumulate them there
(``tests/components/trainer/test_keras_distribution.py``). So every device has a plain model of its
own, the strategy brings the data to it and sums what they find, and the optimizer is one device's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from components.trainer import cluster


class Team:
    """All devices of a training, of which this process has some.

    Args:
        strategy: a ``MirroredStrategy`` or a ``MultiWorkerMirroredStrategy``. Nothing is made in
            its scope.
        worker: which process this is; 0 is the chief.
        workers: how many there are.
    """

    def __init__(self, strategy: tf.distribute.Strategy, worker: int = 0, workers: int = 1):
        self.strategy, self.worker, self.workers = strategy, worker, workers
        self.names: Sequence[str] = strategy.extended.worker_devices
        self.devices = len(self.names)

    @property
    def chief(self) -> bool:
        """Whether this process decides, writes and tells."""
        return self.worker == 0

    @property
    def size(self) -> int:
        """The devices of all workers."""
        return self.workers * self.devices

    def number(self, device: int) -> int:
        """The number of this process's device among all."""
        return self.worker * self.devices + device

    def each(self, work: Callable[[int], Any]) -> list[Any]:
        """Calls ``work`` on every device of this process at once, in a graph.

        Args:
            work: is given the device's number in this process; may call ``summed``.

        Returns:
            What each device gave.
        """

        def here() -> Any:
            context = tf.distribute.get_replica_context()
            number = tf.get_static_value(context.replica_id_in_sync_group)
            return work(int(number) % self.devices)

        return list(self.strategy.experimental_local_results(self.strategy.run(here)))

    @staticmethod
    def summed(value: tf.Tensor) -> tf.Tensor:
        """The sum of what all devices bring; to be called by all of them, within ``each``."""
        context = tf.distribute.get_replica_context()
        # The identity is on the device; what comes from without may be nowhere in particular.
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(value))

    def from_chief(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """What the chief's call was given, in every worker; all call with the same shapes."""
        found = [np.asarray(value) for value in values]
        if self.workers == 1:
            return found
        for carrier in (np.float32, np.float64):
            carried = [i for i, value in enumerate(found) if _carrier(value) is carrier]
            if not carried:
                continue
            # A sum with zeros.
            flat = np.concatenate([np.ravel(found[i]).astype(carrier) for i in carried])
            flat = self._sum(tf.constant(flat if self.chief else np.zeros_like(flat))).numpy()
            ends = np.cumsum([found[i].size for i in carried])[:-1]
            for i, part in zip(carried, np.split(flat, ends), strict=True):
                found[i] = part.reshape(found[i].shape).astype(found[i].dtype)
        return found

    def agreed(self, numbers: Sequence[float]) -> Sequence[float]:
        """The chief's numbers, in every worker."""
        return self.from_chief([np.array(numbers, np.float64)])[0].tolist()

    def told(self, find: Callable[[], Any]) -> Any:
        """What ``find`` gives, in every worker; only the chief calls it. JSON goes through."""
        if self.workers == 1:
            return find()
        content = json.dumps(find()).encode() if self.chief else b""
        (length,) = self.from_chief([np.array(len(content))])
        letters = np.frombuffer(content or bytes(int(length)), np.uint8)
        (letters,) = self.from_chief([letters])
        return json.loads(letters.tobytes())

    @tf.function(reduce_retracing=True, autograph=False)
    def _sum(self, value: tf.Tensor) -> tf.Tensor:
        def work(device: int) -> tf.Tensor:
            return self.summed(value if device == 0 else tf.zeros_like(value))

        return self.each(work)[0]


def _carrier(value: np.ndarray) -> type[np.floating[Any]]:
    """The type in which values of that one's type are handed on exactly: a short one for weights,
    a long one for counters, seeds and times."""
    short = value.dtype.kind not in "biu" and value.dtype.itemsize <= 4
    return np.float32 if short else np.float64


def gather(training: Mapping[str, Any]) -> Team | None:
    """The devices that ``training.devices`` names; None where one works alone.

    Args:
        training: the YAML's section ``training``.

    Raises:
        UserError: workers are wanted, and ``TF_CONFIG`` tells nothing of them.
    """
    if training["devices"] == "workers":
        return join()
    if training["devices"] == "all":
        gpus = [device.name for device in tf.config.list_logical_devices("GPU")]
        if len(gpus) > 1:
            return Team(tf.distribute.MirroredStrategy(gpus))
    return None


def join() -> Team:
    """Waits for the other workers; to be called before TensorFlow has done anything.

    Raises:
        UserError: ``TF_CONFIG`` does not tell of them.
    """
    place = cluster.place(os.environ)
    kinds = tf.distribute.experimental.CommunicationImplementation
    ways = kinds.NCCL if tf.config.list_physical_devices("GPU") else kinds.RING
    options = tf.distribute.experimental.CommunicationOptions(implementation=ways)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    return Team(strategy, place.index, len(place.addresses))
