"""A moving average of the weights, which is what is evaluated and exported."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import keras
import tensorflow as tf


class MovingAverage:
    """An exponential moving average of a model's trainable weights (Polyak & Juditsky 1992).

    Keras's own would overwrite the weights at the end of every ``fit``, and would count batches
    instead of updates where gradients are accumulated.

    Args:
        model: the model, with its weights made.
        decay: what is kept of the average at each update. Early on less is kept,
            (1 + step) / (10 + step), so that the first weights are soon forgotten.
    """

    def __init__(self, model: keras.Model, decay: float):
        self._weights = [weight.value for weight in model.trainable_variables]
        self.variables = [
            tf.Variable(weight, trainable=False, name=f"average_{i}")
            for i, weight in enumerate(self._weights)
        ]
        self._decay = decay

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def update(self, step: tf.Tensor) -> None:
        """Takes in the weights after update number ``step``, counted from 1."""
        keep = tf.minimum(self._decay, (1.0 + step) / (10.0 + step))
        for average, weight in zip(self.variables, self._weights, strict=True):
            average.assign_sub((1.0 - keep) * (average - weight))

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Within the block the model has the averages for weights."""
        own = [weight.numpy() for weight in self._weights]
        for weight, average in zip(self._weights, self.variables, strict=True):
            weight.assign(average)
        try:
            yield
        finally:
            for weight, value in zip(self._weights, own, strict=True):
                weight.assign(value)
