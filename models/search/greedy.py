"""Greedy search: the most probable token at every step."""

from keras import ops

from regard.models.search.base import RowInputs
from regard.models.search.rollout import RollOutSearch
from regard.models.tensors import Tensor


class GreedySearch(RollOutSearch):
    """Take the best token at every step; one hypothesis per row.

    Args:
        no_repeat_ngram_size: the length of n-grams that must not repeat; 0 disables it.
    """

    def __init__(self, no_repeat_ngram_size: int = 0):
        self.no_repeat_ngram_size = no_repeat_ngram_size

    def choose(self, scores: Tensor, position: Tensor, inputs: RowInputs) -> Tensor:
        return ops.argmax(scores, axis=-1)
