"""Greedy search: the most probable token at every step."""

from keras import ops

from regard.models.search.base import RowInputs
from regard.models.search.logits_processor import Penalties
from regard.models.search.rollout import RollOutSearch
from regard.models.tensors import Tensor


class GreedySearch(RollOutSearch):
    """Take the best token at every step; one hypothesis per row.

    Args:
        no_repeat_ngram_size: the length of n-grams that must not repeat; 0 disables it.
        repetition_penalty: divisor of the logits of tokens that the hypothesis already contains.
    """

    def __init__(self, no_repeat_ngram_size: int = 0, repetition_penalty: float = 1.0):
        self.penalties = Penalties(no_repeat_ngram_size, repetition_penalty)

    def choose(self, scores: Tensor, position: Tensor, inputs: RowInputs) -> Tensor:
        return ops.argmax(scores, axis=-1)
