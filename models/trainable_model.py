"""The interface between a model and the Trainer."""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops
from typing_extensions import Self

from regard.models.tensors import Tensor
from regard.models.vocabulary import PAD


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

    ``call`` takes a dictionary of inputs and targets. ``batch_loss`` updates ``plain_loss`` with
    the loss per unit without smoothing and penalties, weighted by the number of units.

    Attributes:
        parts: the arguments of the constructor that are layers.
        settings: the other arguments, as in ``ConfiguredLayer``.
        unit: the unit of mean losses and of the throughput: ``tokens`` or ``rows``.
        plain_loss: the running mean; its ``count`` is the number of units, its ``last_weight`` that
            of the last batch.
    """

    parts: tuple[str, ...]
    settings: dict[str, Any]
    unit: str = "tokens"

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.plain_loss = LossMean(name="plain_loss")

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Tensor = None,
        training: bool = True,
    ) -> Tensor:
        """Return the loss of a batch, with the losses that layers have added."""
        return sum(self.losses, self.batch_loss(x, y_pred, training))

    def batch_loss(self, inputs: Any, outputs: Any, training: bool) -> Tensor:
        """Return the mean loss of a batch, and update ``plain_loss``.

        Args:
            inputs: the argument of ``call``.
            outputs: the result of ``call``.
            training: whether penalties count.
        """
        raise TypeError(f"{type(self).__name__} does not implement batch_loss.")

    def mean_over_rows(self, losses: Tensor, ids: Tensor) -> Tensor:
        """Return the mean of ``losses`` ``[batch]``, and update ``plain_loss``.

        Rows whose ``ids`` ``[batch, length]`` are all padding do not count.
        """
        mask = ops.cast(ops.any(ops.not_equal(ids, PAD), axis=-1), "float32")
        count = ops.sum(mask)
        mean = ops.sum(losses * mask) / ops.maximum(count, 1.0)
        self.plain_loss.update_state(mean, count)
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

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        parts = {name: serialize(getattr(self, name)) for name in self.parts}
        return {**super().get_config(), **parts, **self.settings}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        deserialize = keras.saving.deserialize_keras_object
        return cls(**{**config, **{name: deserialize(config[name]) for name in cls.parts}})
