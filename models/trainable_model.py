"""The interface between a model and the Trainer."""

from collections.abc import Mapping
from typing import Any

import keras
from typing_extensions import Self

from regard.models.serialization import layer_config, layer_from_config
from regard.models.tensors import Tensor


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

    ``call`` takes a dictionary of inputs and targets. ``compute_loss`` updates ``plain_loss`` with
    the loss per unit without smoothing and penalties, weighted by the number of units.

    Attributes:
        parts: the arguments of the constructor that are layers.
        settings: the other arguments, as in ``ConfiguredLayer``.
        unit: what a loss is averaged over and throughput is counted in: ``tokens`` or ``rows``.
        plain_loss: the running mean; its ``count`` is the number of units, its ``last_weight`` that
            of the last batch.
    """

    parts: tuple[str, ...]
    settings: dict[str, Any]
    unit: str = "tokens"

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.plain_loss = LossMean(name="plain_loss")

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Tensor = None
    ) -> dict[str, Tensor]:
        """Return the running means, which ``compute_loss`` has updated."""
        return self.get_metrics_result()

    def evaluation_metrics(self, results: Mapping[str, float]) -> dict[str, float]:
        """Return the metrics of an evaluation; ``loss`` is the one that evaluations compare.

        Args:
            results: the result of Keras's ``evaluate``.
        """
        return {"loss": float(results["plain_loss"])}

    def get_config(self) -> dict[str, Any]:
        parts = {name: layer_config(getattr(self, name)) for name in self.parts}
        return {**super().get_config(), **parts, **self.settings}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        return cls(**{**config, **{name: layer_from_config(config[name]) for name in cls.parts}})
