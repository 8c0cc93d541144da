"""The interface between a model and the Trainer."""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops
from typing_extensions import Self

from regard.models.tensors import Tensor
from regard.models.vocabulary import PAD

# The names of offsets and of the scales of normalizations, also as parts of longer names.
_OFFSETS_AND_SCALES = ("bias", "gamma", "beta")


class LossMean(keras.metrics.Mean):
    """A running mean that keeps the weight of its last update.

    Attributes:
        last_weight: the ``sample_weight`` of the last update. In a graph it is a tensor of the
            graph, so only what is traced after the update may use it.
    """

    last_weight: Tensor = None

    def update_state(self, values: Tensor, sample_weight: Tensor = None) -> None:
        self.last_weight = sample_weight
        super().update_state(values, sample_weight)


class TrainableModel(keras.Model):
    """Base class of all models that the Trainer trains.

    ``call`` takes a dictionary of inputs and targets. Keras's ``fit`` calls ``call`` and
    ``compute_loss`` for each batch, and ``compute_loss`` calls ``batch_loss``, which subclasses
    implement: the loss to minimize is its result. ``batch_loss`` also updates ``loss_mean`` with
    the loss per unit without smoothing and penalties, weighted by the number of units.

    Attributes:
        parts: the arguments of the constructor that are layers.
        settings: the other arguments, as in ``ConfiguredLayer``.
        unit: the unit of mean losses and of the throughput: ``tokens`` or ``rows``.
        loss_mean: the running mean of the loss per unit, a metric, which Keras's logs contain as
            ``plain_loss``; its ``count`` is the number of units, its ``last_weight`` that of the
            last batch. What the optimizer minimizes is the result of ``compute_loss``.
    """

    parts: tuple[str, ...]
    settings: dict[str, Any]
    unit: str = "tokens"

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.loss_mean = LossMean(name="plain_loss")

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Tensor = None,
        training: bool = True,
    ) -> Tensor:
        """Return the loss of a batch, with the losses that layers have added.

        Keras calls it in each step of ``fit`` and ``evaluate``, after ``call``.
        """
        return sum(self.losses, self.batch_loss(x, y_pred, training))

    def batch_loss(self, inputs: Any, outputs: Any, training: bool) -> Tensor:
        """Return the mean loss of a batch, and update ``loss_mean``.

        Args:
            inputs: the argument of ``call``.
            outputs: the result of ``call``.
            training: whether penalties count.
        """
        raise TypeError(f"{type(self).__name__} does not implement batch_loss.")

    def mean_over_rows(self, losses: Tensor, ids: Tensor) -> Tensor:
        """Return the mean of ``losses`` ``[batch]``, and update ``loss_mean``.

        Rows whose ``ids`` ``[batch, length]`` are all padding do not count.
        """
        mask = ops.cast(ops.any(ops.not_equal(ids, PAD), axis=-1), "float32")
        count = ops.sum(mask)
        mean = ops.sum(losses * mask) / ops.maximum(count, 1.0)
        self.loss_mean.update_state(mean, count)
        return mean

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Tensor = None
    ) -> dict[str, Tensor]:
        """Return the running means, which ``batch_loss`` has updated."""
        return self.get_metrics_result()

    def evaluation_metrics(self, results: Mapping[str, float]) -> dict[str, float]:
        """Return the metrics of an evaluation; ``loss`` is the one that evaluations compare.

        Args:
            results: the result of Keras's ``evaluate``.
        """
        return {"loss": float(results["plain_loss"])}

    def undecayed_weights(self) -> list[Any]:
        """Return the weights that weight decay would harm, because zero is no neutral value.

        These are offsets and the scales of normalizations, by the names that Keras and our layers
        give them, and the attributes of a layer that its ``undecayed`` names.
        """
        weights = [w for w in self.trainable_variables if _is_offset_or_scale(w.name)]
        for layer in self._flatten_layers():
            weights += [getattr(layer, name) for name in getattr(layer, "undecayed", ())]
        return weights

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        parts = {name: serialize(getattr(self, name)) for name in self.parts}
        return {**super().get_config(), **parts, **self.settings}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        deserialize = keras.saving.deserialize_keras_object
        return cls(**{**config, **{name: deserialize(config[name]) for name in cls.parts}})


def _is_offset_or_scale(name: str) -> bool:
    return any(part in name for part in _OFFSETS_AND_SCALES)
