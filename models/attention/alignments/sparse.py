"""Sparse attention: most positions get the weight 0."""

from typing import Any

from keras import ops

from regard.core.bounds import Fraction, Positive
from regard.models.attention.alignments.base import MASKED, Alignment, masked_softmax
from regard.models.serialization import checked_arguments, choice
from regard.models.tensors import Tensor


@choice("sparsemax")
class SparsemaxAlignment(Alignment):
    """Sparsemax: low scores get a weight of exactly 0 (Martins 2016).

    Martins and Astudillo 2016, "From Softmax to Sparsemax", §2, algorithm 1: the Euclidean
    projection of the scores onto the simplex, max(z - τ, 0) with the τ that makes the sum 1. The
    gradient is that of §2.5.
    """

    def call(self, scores: Tensor, mask: Tensor = None, **context: Any) -> Tensor:
        return ops.cast(sparsemax(scores, mask), self.compute_dtype)


def sparsemax(scores: Tensor, mask: Tensor = None) -> Tensor:
    """Return sparsemax over the last axis in float32; zeros for a completely masked row."""
    # Not that of Keras 3.15, which is wrong if more than one position has a weight.
    scores = ops.cast(scores, "float32")
    if mask is not None:
        scores = ops.where(mask, scores, MASKED)
    scores = ops.maximum(scores, MASKED)
    scores = scores - ops.stop_gradient(ops.max(scores, axis=-1, keepdims=True, initial=MASKED))
    # The support needs no gradient; τ is a function of the scores in the support.
    descending = -ops.sort(-ops.stop_gradient(scores), axis=-1)
    count = ops.cast(ops.arange(ops.shape(scores)[-1]) + 1, "float32")
    in_support = ops.cast(1.0 + count * descending > ops.cumsum(descending, axis=-1), "float32")
    size = ops.sum(in_support, axis=-1, keepdims=True)
    threshold = (ops.sum(in_support * descending, axis=-1, keepdims=True) - 1.0) / size
    support = ops.cast(ops.stop_gradient(scores) > threshold, "float32")
    if mask is not None:
        support = support * ops.cast(mask, "float32")
    size = ops.maximum(ops.sum(support, axis=-1, keepdims=True), 1.0)
    threshold = (ops.sum(support * scores, axis=-1, keepdims=True) - 1.0) / size
    return ops.maximum(scores - threshold, 0.0) * support


@choice("top_k")
class TopKAlignment(Alignment):
    """Softmax over the k highest scores.

    Gupta et al. 2021, "Memory-efficient Transformers via Top-k Attention", §2. Of equal scores
    the first ones count. All other positions get exactly 0.

    Args:
        k: Number of source positions with weight.
    """

    def __init__(self, k: Positive = 8, **kwargs: Any):
        super().__init__(**kwargs)
        self.settings = checked_arguments(locals())
        self.k = k

    def call(self, scores: Tensor, mask: Tensor = None, **context: Any) -> Tensor:
        best = self._best(ops.stop_gradient(ops.cast(scores, "float32")), mask)
        mask = best if mask is None else ops.logical_and(mask, best)
        return ops.cast(masked_softmax(scores, mask), self.compute_dtype)

    def _best(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Return which scores are among the k best."""
        if mask is not None:
            scores = ops.where(mask, scores, MASKED)
        source = ops.shape(scores)[-1]
        # XLA needs a static k if the source's length is static.
        k = min(self.k, source) if isinstance(source, int) else ops.minimum(self.k, source)
        _, best = ops.top_k(scores, k)
        return ops.any(ops.equal(best[..., None], ops.arange(source)), axis=-2)


@choice("thresholded")
class ThresholdedAlignment(Alignment):
    """Softmax in which weights under a threshold become 0, and the rest is renormalised.

    A simple form of pruning by weight, as in Ham et al. 2020, "A³: Accelerating Attention
    Mechanisms in Neural Networks with Approximation", whose bound is relative to the largest
    weight. Where no weight reaches the bound the largest ones stay, so that the sum is always 1.

    Args:
        threshold: Smallest weight that is not set to 0.
    """

    def __init__(self, threshold: Fraction = 0.05, **kwargs: Any):
        super().__init__(**kwargs)
        self.settings = checked_arguments(locals())
        self.threshold = threshold

    def call(self, scores: Tensor, mask: Tensor = None, **context: Any) -> Tensor:
        soft = ops.stop_gradient(masked_softmax(scores, mask))
        largest = ops.max(soft, axis=-1, keepdims=True, initial=0.0)
        is_kept = soft >= ops.minimum(largest, self.threshold)
        mask = is_kept if mask is None else ops.logical_and(mask, is_kept)
        return ops.cast(masked_softmax(scores, mask), self.compute_dtype)
