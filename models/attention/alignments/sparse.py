"""Alignments that give most positions no weight at all."""

from __future__ import annotations

from typing import Any

from keras import ops

from models.attention.alignments.base import MASKED, Alignment, masked_softmax
from models.serialization import register


@register
class SparsemaxAlignment(Alignment):
    """The distribution nearest to the scores: what scores too low weighs exactly 0.

    Martins and Astudillo 2016, "From Softmax to Sparsemax", §2, algorithm 1: max(z - τ, 0) with
    the τ that makes the sum 1. The gradient is that of §2.5.
    """

    def call(
        self,
        scores: Any,
        mask: Any = None,
        query: Any = None,
        position: Any = None,
        training: bool = False,
        drawn: Any = None,
    ) -> Any:
        return ops.cast(sparsemax(scores, mask), self.compute_dtype)


def sparsemax(scores: Any, mask: Any = None) -> Any:
    """Sparsemax over the last axis in float32; where all is masked the weights are all zero."""
    scores = ops.cast(scores, "float32")
    if mask is not None:
        scores = ops.where(mask, scores, MASKED)
    scores = ops.maximum(scores, MASKED)
    scores = scores - ops.stop_gradient(ops.max(scores, axis=-1, keepdims=True))
    # Which scores are in the support needs no gradient; τ then follows from those alone.
    ordered = -ops.sort(-ops.stop_gradient(scores), axis=-1)
    count = ops.cast(ops.arange(ops.shape(scores)[-1]) + 1, "float32")
    inside = ops.cast(1.0 + count * ordered > ops.cumsum(ordered, axis=-1), "float32")
    size = ops.sum(inside, axis=-1, keepdims=True)
    threshold = (ops.sum(inside * ordered, axis=-1, keepdims=True) - 1.0) / size
    support = ops.cast(ops.stop_gradient(scores) > threshold, "float32")
    if mask is not None:
        support = support * ops.cast(mask, "float32")
    size = ops.maximum(ops.sum(support, axis=-1, keepdims=True), 1.0)
    threshold = (ops.sum(support * scores, axis=-1, keepdims=True) - 1.0) / size
    return ops.maximum(scores - threshold, 0.0) * support


@register
class TopKAlignment(Alignment):
    """The softmax over the k best scores; all others weigh exactly 0.

    Gupta et al. 2021, "Memory-efficient Transformers via Top-k Attention", §2. Of equal scores
    the first are taken.

    Args:
        k: how many positions get weight; all, where there are fewer.

    Raises:
        ValueError: ``k`` is below 1.
    """

    def __init__(self, k: int = 8, **kwargs: Any):
        super().__init__(**kwargs)
        if k < 1:
            raise ValueError(f"The alignment 'top_k' needs a k from 1, not {k}.")
        self.k = k

    def call(
        self,
        scores: Any,
        mask: Any = None,
        query: Any = None,
        position: Any = None,
        training: bool = False,
        drawn: Any = None,
    ) -> Any:
        best = self._best(ops.stop_gradient(ops.cast(scores, "float32")), mask)
        mask = best if mask is None else ops.logical_and(mask, best)
        return ops.cast(masked_softmax(scores, mask), self.compute_dtype)

    def _best(self, scores: Any, mask: Any) -> Any:
        """Which scores are among the k best."""
        if mask is not None:
            scores = ops.where(mask, scores, MASKED)
        source = ops.shape(scores)[-1]
        # Where the source's length is known, the number must be one too: XLA asks for it.
        k = min(self.k, source) if isinstance(source, int) else ops.minimum(self.k, source)
        _, best = ops.top_k(scores, k)
        return ops.any(ops.equal(best[..., None], ops.arange(source)), axis=-2)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "k": self.k}
