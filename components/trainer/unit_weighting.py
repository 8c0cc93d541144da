"""Adam with accumulated batches that weigh by their units, and with LoRA."""

from typing import Any

from keras import ops

from regard.components.trainer.fine_tuning import LowRankAdapters
from regard.models.trainable_model import LossMean


class UnitWeighting:
    """What Regard adds to Keras's Adam on every backend.

    Keras weighs accumulated batches equally; here they weigh by their units, so that an update
    equals that of the joint batch. With LoRA, Adam updates factors of kernels.

    Attributes:
        loss_mean: the model's running mean of the loss, which knows the units of the last batch.
        adapters: what is trained in place of the kernels; None: the weights themselves.
    """

    loss_mean: LossMean
    adapters: LowRankAdapters | None = None
    gradient_accumulation_steps: int | None

    def build(self, variables: list[Any]) -> None:
        """Create the moments, and the number of units of the accumulated batches."""
        adam: Any = super()
        adam.build(self.adapters.create(self, variables) if self.adapters else variables)
        if self.gradient_accumulation_steps:
            self._units = adam.add_variable((), name="accumulated_units")

    def units_of_batch(self) -> Any:
        """Return the number of units of the batch of these gradients."""
        return self.loss_mean.last_weight

    def dense(self, gradient: Any) -> Any:
        """Return a gradient as a tensor; that of an embedding may be another object."""
        return gradient

    def apply(self, grads: list[Any], trainable_variables: Any = None) -> None:
        """Update the weights, or accumulate the gradients."""
        adam: Any = super()
        if self.adapters:
            grads, trainable_variables = self.adapters.gradients(grads), None
        if self.gradient_accumulation_steps:
            units = ops.cast(self.units_of_batch(), "float32")
            self._units.assign_add(units)
            grads = [None if grad is None else units * self.dense(grad) for grad in grads]
        adam.apply(grads, trainable_variables)
        if self.adapters:
            self.adapters.merge()

    def _clip_gradients(self, grads: list[Any]) -> list[Any]:
        """Scale the gradients down if their global norm exceeds the limit.

        Accumulated gradients are divided by their units first: so far they are the sum of the
        weighted gradients divided by the number of batches.
        """
        if self.gradient_accumulation_steps:
            scale = self.gradient_accumulation_steps / ops.maximum(self._units, 1.0)
            grads = [None if grad is None else scale * grad for grad in grads]
            self._units.assign(ops.zeros(()))
        if not getattr(self, "global_clipnorm", None):
            return grads
        return self.clip_by_norm([None if grad is None else self.dense(grad) for grad in grads])

    def clip_by_norm(self, grads: list[Any]) -> list[Any]:
        """Return the gradients with a global norm within the limit ``global_clipnorm``."""
        adam: Any = super()
        return adam._clip_gradients(grads)
