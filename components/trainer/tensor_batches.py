"""The batches of a training as a TensorFlow data set."""

import numpy as np
import tensorflow as tf

from regard.components.trainer.batches import Batch, Batches

_PARALLEL_BATCHES = 2
_PREFETCHED_BATCHES = 4


def epoch_dataset(
    batches: Batches,
    epoch: int | None = None,
    skip: int = 0,
    numbers: np.ndarray | None = None,
) -> tf.data.Dataset:
    """Return the batches of one epoch.

    If devices share them, each is a tuple of the parts of this process's devices.

    Args:
        batches: the batches of a split.
        epoch: the epoch, from 0, which seeds the order; None for the order of evaluation.
        skip: the number of batches to skip, which an interrupted run has trained on.
        numbers: the numbers of the batches; None for all.
    """
    count = batches.plan(epoch)
    numbers = np.arange(skip, count) if numbers is None else numbers
    dataset = tf.data.Dataset.from_tensor_slices(numbers).map(
        lambda number: _load(batches, epoch, number),
        num_parallel_calls=_PARALLEL_BATCHES,
        deterministic=True,
    )
    options = tf.data.Options()
    # Autotuning has nothing to tune here, and the end of an epoch would wait for its thread,
    # which wakes rarely, for up to a minute.
    options.autotune.enabled = False
    return dataset.prefetch(_PREFETCHED_BATCHES).with_options(options)


def _load(
    batches: Batches, epoch: int | None, number: tf.Tensor
) -> dict[str, tf.Tensor] | tuple[dict[str, tf.Tensor], ...]:
    """Return the tensors of a batch, or of its parts."""
    sharing = batches.sharing
    if sharing is None:
        return _load_part(batches, epoch, number, 0, 1)
    return tuple(
        _load_part(batches, epoch, number, part, sharing.parts) for part in sharing.local_parts
    )


def _load_part(
    batches: Batches, epoch: int | None, number: tf.Tensor, part: int, parts: int
) -> dict[str, tf.Tensor]:
    specs = batches.specs

    def read(number: np.int64) -> list[np.ndarray]:
        batch: Batch = batches.read(epoch, int(number), part, parts)
        return [batch[name] for name in specs]

    types = [kind for kind, _ in specs.values()]
    tensors = tf.numpy_function(read, [number], types, stateful=False)
    for tensor, (_, shape) in zip(tensors, specs.values(), strict=True):
        tensor.set_shape(shape)
    return dict(zip(specs, tensors, strict=True))
