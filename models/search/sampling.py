"""Sampling: every token is drawn at random."""

from keras import ops

from regard.models.noise import gumbel_noise
from regard.models.search.base import MIN_SCORE, Hypotheses, RowInputs, Step
from regard.models.search.rollout import RollOutSearch
from regard.models.tensors import State, Tensor

# Far below every possible score, noise included.
NEVER = -1e30


class SamplingSearch(RollOutSearch):
    """Draw hypotheses from the model and sort them by probability.

    A token is drawn with the Gumbel-max trick from softmax(log P / temperature), truncated to the
    ``top_k`` most probable tokens (Fan et al. 2018, "Hierarchical Neural Story Generation", §5.1)
    and then to the smallest set of tokens with a total probability of at least ``top_p`` (Holtzman
    et al. 2020, "The Curious Case of Neural Text Degeneration", §3.1).

    Args:
        temperature: above 0; below 1 sharpens the distribution, above 1 flattens it.
        top_k: the number of tokens to draw from; 0 means all.
        top_p: the total probability of the tokens to draw from, above 0; 1 means all.
        samples: the number of hypotheses per row.
        seed: the same seed and key of a row give the same hypotheses.
    """

    def __init__(
        self,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        samples: int = 1,
        seed: int = 0,
    ):
        self.temperature, self.top_k, self.top_p = temperature, top_k, top_p
        self.hypotheses, self.seed = samples, seed

    def choose(self, scores: Tensor, position: Tensor, inputs: RowInputs) -> Tensor:
        batch = ops.shape(inputs["keys"])[0]
        keys = ops.repeat(inputs["keys"], self.hypotheses)[:, None]
        numbers = ops.tile(ops.arange(self.hypotheses, dtype="int32"), [batch])[:, None]
        # The best token gets 0, so that a low temperature cannot overflow.
        best = ops.max(scores, axis=-1, keepdims=True)
        logits = (scores - best) / self.temperature
        logits = ops.where(scores > MIN_SCORE / 2, logits, NEVER)
        if not self.top_k and self.top_p == 1.0:
            tokens = ops.arange(ops.shape(scores)[-1], dtype="int32")[None]
            noise = gumbel_noise(self.seed, keys, numbers, position, tokens)
            return ops.argmax(logits + noise, axis=-1)
        logits, tokens = self._truncate(logits)
        noise = gumbel_noise(self.seed, keys, numbers, position, tokens)
        chosen = ops.argmax(logits + noise, axis=-1)[:, None]
        return ops.take_along_axis(tokens, chosen, axis=-1)[:, 0]

    def run(self, step: Step, state: State, inputs: RowInputs, longest: Tensor) -> Hypotheses:
        ids, lengths, total, _ = super().run(step, state, inputs, longest)
        total, order = ops.top_k(total, self.hypotheses)
        return Hypotheses(
            ops.take_along_axis(ids, order[:, :, None], axis=1),
            ops.take_along_axis(lengths, order, axis=1),
            total,
            total,
        )

    def _truncate(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits and ids of the tokens to draw from, best first, ``[beams, tokens]``."""
        count = ops.shape(logits)[-1]
        if self.top_k:
            is_static = logits.shape[-1] is not None
            count = (min if is_static else ops.minimum)(self.top_k, count)
        logits, tokens = ops.top_k(logits, count)
        if self.top_p < 1.0:
            probabilities = ops.softmax(logits, axis=-1)
            before = ops.cumsum(probabilities, axis=-1) - probabilities
            # The best token stays, whatever rounding does to a sum that starts at zero.
            is_first = ops.arange(ops.shape(logits)[-1]) == 0
            logits = ops.where(ops.logical_or(before < self.top_p, is_first), logits, NEVER)
        return logits, tokens
