"""The batches of a training as TensorFlow data sets."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from regard.components.trainer.backends.base import EpochData
from regard.components.trainer.batches import Batches

_PARALLEL_BATCHES = 2
_PREFETCHED_BATCHES = 4
_NO_EPOCH = -1  # in the order of evaluation


class TensorBatches(EpochData):
    """The data sets of the epochs of a split, which share one graph.

    Args:
        batches: the batches as NumPy arrays.
    """

    def __init__(self, batches: Batches):
        self._batches = batches

    def epoch(
        self, number: int | None = None, skip: int = 0, numbers: np.ndarray | None = None
    ) -> tf.data.Dataset:
        """Return the batches of one epoch.

        If devices share them, each is a tuple of the parts of this process's devices.

        Args:
            number: the epoch, from 0, which seeds the order; None for the order of evaluation.
            skip: the number of batches to skip, which an interrupted run has trained on.
            numbers: the numbers of the batches; None for all.
        """
        epoch = _NO_EPOCH if number is None else number
        count = self._batches.plan(number)
        numbers = np.arange(skip, count) if numbers is None else numbers
        dataset = tf.data.Dataset.from_tensor_slices(numbers).map(
            lambda batch: self._load(tf.constant(epoch, tf.int64), batch),
            num_parallel_calls=_PARALLEL_BATCHES,
            deterministic=True,
        )
        options = tf.data.Options()
        # Autotuning has nothing to tune here, and the end of an epoch would wait for its thread,
        # which wakes rarely, for up to a minute.
        options.autotune.enabled = False
        return dataset.prefetch(_PREFETCHED_BATCHES).with_options(options)

    def evaluation(self) -> tf.data.Dataset:
        return self._evaluation

    @functools.cached_property
    def _evaluation(self) -> tf.data.Dataset:
        return self.epoch().cache()

    @functools.cached_property
    def _load(self) -> Callable[[tf.Tensor, tf.Tensor], Any]:
        """The function from the numbers of an epoch and a batch to tensors, traced once."""

        @tf.function(input_signature=[tf.TensorSpec([], tf.int64)] * 2, autograph=False)
        def load(epoch: tf.Tensor, batch: tf.Tensor) -> Any:
            sharing = self._batches.sharing
            if sharing is None:
                return self._load_part(epoch, batch, 0, 1)
            return tuple(
                self._load_part(epoch, batch, part, sharing.parts) for part in sharing.local_parts
            )

        return load

    def _load_part(
        self, epoch: tf.Tensor, batch: tf.Tensor, part: int, parts: int
    ) -> dict[str, tf.Tensor]:
        specs = self._batches.specs

        def read(epoch: np.int64, batch: np.int64) -> list[np.ndarray]:
            number = None if epoch == _NO_EPOCH else int(epoch)
            arrays = self._batches.read(number, int(batch), part, parts)
            return [arrays[name] for name in specs]

        types = [kind for kind, _ in specs.values()]
        tensors = tf.numpy_function(read, [epoch, batch], types, stateful=False)
        for tensor, (_, shape) in zip(tensors, specs.values(), strict=True):
            tensor.set_shape(shape)
        return dict(zip(specs, tensors, strict=True))


def epoch_dataset(
    batches: Batches,
    number: int | None = None,
    skip: int = 0,
    numbers: np.ndarray | None = None,
) -> tf.data.Dataset:
    """Return the data set of a single epoch, see ``TensorBatches.epoch``."""
    return TensorBatches(batches).epoch(number, skip, numbers)
