"""How a choice without a gradient learns: by the reward it is followed by."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.serialization import register


@register
class Reinforce(keras.layers.Layer):
    """The loss that teaches a hard alignment where to look.

    Xu et al. 2015, "Show, Attend and Tell", §4.1: -λr (R - b) log p(a) - λe H(p) for each choice
    a, with the reward R held constant, b its moving average over the batches before, and H the
    entropy. The reward of a row's choices is its mean log-probability a piece, which lets one b
    serve short and long rows. Rows that were given the distribution itself instead of a choice
    get no gradient from their reward, since Σ p ∇log p = 0.

    Args:
        baseline_decay: how much of b stays when a batch is added to it.
        reward_weight: λr.
        entropy_weight: λe.

    Shapes: log-probabilities of the pieces ``[batch, target]``, alignments and the distribution
    they were drawn from ``[batch, target, source]``, mask ``[batch, target]``, true at real
    pieces. Gives a scalar in nats, the mean over the real pieces, float32.

    Raises:
        ValueError: the decay is not from 0 up to, but without, 1.
    """

    def __init__(
        self,
        baseline_decay: float = 0.9,
        reward_weight: float = 1.0,
        entropy_weight: float = 0.002,
        **kwargs: Any,
    ):
        # Probabilities must not be rounded on their way in, whatever the model computes in.
        super().__init__(autocast=False, **kwargs)
        if not 0.0 <= baseline_decay < 1.0:
            raise ValueError(f"A baseline's decay is from 0 to below 1, not {baseline_decay}.")
        self.settings: dict[str, Any] = {
            "baseline_decay": baseline_decay,
            "reward_weight": reward_weight,
            "entropy_weight": entropy_weight,
        }

    def build(self, *shapes: Any, **more: Any) -> None:
        self.baseline = self.add_weight(
            name="baseline", shape=(), initializer="zeros", dtype="float32", trainable=False
        )
        self.built = True

    def call(
        self,
        token_logp: Any,
        alignments: Any,
        distribution: Any,
        mask: Any,
        training: bool = False,
    ) -> Any:
        real = ops.cast(mask, "float32")
        pieces = ops.sum(real, axis=-1)
        count = ops.maximum(ops.sum(real), 1.0)
        reward = ops.sum(ops.stop_gradient(ops.cast(token_logp, "float32")) * real, axis=-1)
        reward = reward / ops.maximum(pieces, 1.0)
        advantage = (reward - ops.convert_to_tensor(self.baseline))[:, None]
        logs = _log(ops.cast(distribution, "float32"))
        chosen = ops.stop_gradient(ops.cast(alignments, "float32"))
        chosen = ops.sum(chosen * logs, axis=-1)
        entropy = -ops.sum(ops.cast(distribution, "float32") * logs, axis=-1)
        losses = (
            -self.settings["reward_weight"] * advantage * chosen
            - self.settings["entropy_weight"] * entropy
        )
        if training:
            self._remember(reward, pieces)
        return ops.sum(losses * real) / count

    def _remember(self, reward: Any, pieces: Any) -> None:
        """Moves the baseline towards the mean reward of the rows that have pieces."""
        rows = ops.cast(pieces > 0, "float32")
        mean = ops.sum(reward * rows) / ops.maximum(ops.sum(rows), 1.0)
        decay = self.settings["baseline_decay"]
        self.baseline.assign(decay * self.baseline + (1.0 - decay) * mean)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


def _log(probabilities: Any) -> Any:
    """The logarithm, and 0 with the gradient 0 where the probability is 0."""
    some = probabilities > 0
    return ops.where(some, ops.log(ops.where(some, probabilities, 1.0)), 0.0)
