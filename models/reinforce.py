"""REINFORCE: a loss for sampled alignments."""

from typing import Any

from keras import ops

from regard.models.serialization import ConfiguredLayer, constructor_arguments, register
from regard.models.tensors import Tensor

_BASELINE_DECAY = 0.9  # of the moving average of the reward


@register
class Reinforce(ConfiguredLayer):
    """The loss that trains a hard alignment.

    Xu et al. 2015, "Show, Attend and Tell", §4.1: -λr (R - T b) log p(a) - λe H(p) for each sample
    a of a row. The reward R is the log-probability of the T tokens from this step on, since a
    sample has no effect on earlier ones; the authors add those, which increases the variance only.
    The baseline b is the moving average of the reward per token over the previous batches, so that
    one b suits short and long rows, and H is the entropy. With λr = 1 the expected gradient is that
    of the expected loss, the negative log-probability per token. Rows with soft weights get no
    gradient from their reward, since Σ p ∇log p = 0.

    Args:
        reward_weight: λr; the default of configurations is 0.1, which has less noise.
        entropy_weight: λe.

    Shapes: log-probabilities of the tokens ``[batch, target]``, alignments and the distribution
    from which they were sampled ``[batch, target, source]``, mask ``[batch, target]``, true at
    tokens. Returns a scalar in nats, the mean over the tokens, float32.
    """

    def __init__(self, reward_weight: float = 1.0, entropy_weight: float = 0.002, **kwargs: Any):
        # Inputs are not cast: probabilities must not be rounded to the compute dtype.
        super().__init__(autocast=False, **kwargs)
        self.settings = constructor_arguments(locals())

    def build(self, *shapes: Any, **more: Any) -> None:
        self.baseline = self.add_weight(
            name="baseline", shape=(), initializer="zeros", dtype="float32", trainable=False
        )

    def call(
        self,
        token_log_probs: Tensor,
        alignments: Tensor,
        distribution: Tensor,
        mask: Tensor,
        training: bool = False,
    ) -> Tensor:
        mask = ops.cast(mask, "float32")
        count = ops.maximum(ops.sum(mask), 1.0)
        token_rewards = ops.stop_gradient(ops.cast(token_log_probs, "float32")) * mask
        rewards, tokens = _sum_from_here(token_rewards), _sum_from_here(mask)
        advantage = rewards - tokens * ops.convert_to_tensor(self.baseline)
        log_probs = _safe_log(ops.cast(distribution, "float32"))
        samples = ops.stop_gradient(ops.cast(alignments, "float32"))
        sample_log_probs = ops.sum(samples * log_probs, axis=-1)
        entropy = -ops.sum(ops.cast(distribution, "float32") * log_probs, axis=-1)
        losses = (
            -self.settings["reward_weight"] * advantage * sample_log_probs
            - self.settings["entropy_weight"] * entropy
        )
        if training:
            self._update_baseline(ops.sum(token_rewards), ops.sum(mask))
        return ops.sum(losses * mask) / count

    def _update_baseline(self, reward: Tensor, tokens: Tensor) -> None:
        """Update the baseline with the mean reward per token, unless there are no tokens.

        A mean over rows would differ between one device and several, whose changes are weighted by
        their numbers of tokens.
        """
        baseline = ops.convert_to_tensor(self.baseline)  # JAX's `where` does not take a variable
        mean = ops.where(tokens > 0, reward / ops.maximum(tokens, 1.0), baseline)
        self.baseline.assign(_BASELINE_DECAY * baseline + (1.0 - _BASELINE_DECAY) * mean)


def _sum_from_here(values: Tensor) -> Tensor:
    """Return the sum of the values from each step on, ``[batch, target]``."""
    return ops.flip(ops.cumsum(ops.flip(values, axis=1), axis=1), axis=1)


def _safe_log(probabilities: Tensor) -> Tensor:
    """Return the logarithm, and 0 with gradient 0 where the probability is 0."""
    is_positive = probabilities > 0
    return ops.where(is_positive, ops.log(ops.where(is_positive, probabilities, 1.0)), 0.0)
