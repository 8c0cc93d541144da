"""What the Trainer expects of a model beyond Keras."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras


class TrainedModel(keras.Model):
    """Base of the models that a training makes.

    ``call`` takes a dictionary of inputs, targets among them, and ``compute_loss`` updates
    ``plain_loss`` with the loss of the batch's units, without what is added for training's sake
    (smoothing, penalties), weighted by their number.

    Attributes:
        unit: what losses are a mean over, and speeds are counted in: ``tokens``, ``rows``.
        plain_loss: the running mean; its ``count`` is the number of units seen.
    """

    unit: str = "tokens"

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.plain_loss = keras.metrics.Mean(name="plain_loss")

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """The running means; ``compute_loss`` has updated them."""
        return self.get_metrics_result()

    def measures(self, results: Mapping[str, float]) -> dict[str, float]:
        """What an evaluation tells: ``loss``, which is compared, and what else is of interest.

        Args:
            results: what Keras's ``evaluate`` gave.
        """
        return {"loss": float(results["plain_loss"])}
