"""Alignments: from scores to the weights with which the source is looked at.

A new alignment is one class here and one line in ``ALIGNMENTS``.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.serialization import register


class Alignment(keras.layers.Layer):
    """Base of the alignments: ``alignment(scores, mask)`` gives weights of the scores' shape.

    Shapes: scores and weights ``[batch, target, source]``; mask ``[batch, 1 or target, source]``,
    true where the source may be looked at, or None. Weights are at least 0, and exactly 0 where
    the mask is false. For alignments that predict where to look there are the query ``[batch,
    target, depth]`` and its position among the decoder's steps, ``[batch or 1, target]``.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.supports_masking = True  # the mask is an argument, not Keras's hidden one

    def build(self, query_shape: tuple[int | None, ...]) -> None:
        """Makes the weights, for those that have any; the query's depth must be known."""
        self.built = True

    def call(
        self,
        scores: Any,
        mask: Any = None,
        query: Any = None,
        position: Any = None,
        training: bool = False,
    ) -> Any:
        raise TypeError(f"{type(self).__name__} does not say how scores become weights.")


def masked_softmax(scores: Any, mask: Any = None) -> Any:
    """A softmax over the last axis in float32; where all is masked the weights are all zero."""
    scores = ops.cast(scores, "float32")
    if mask is None:
        return ops.softmax(scores, axis=-1)
    # Not minus infinity: a row without any true entry must give zeros and no NaN, in the
    # gradient too.
    scores = ops.where(mask, scores, -1e9)
    peak = ops.stop_gradient(ops.max(scores, axis=-1, keepdims=True))
    weights = ops.exp(scores - peak) * ops.cast(mask, "float32")
    total = ops.sum(weights, axis=-1, keepdims=True)
    return weights / ops.maximum(total, 1e-9)


@register
class SoftAlignment(Alignment):
    """The softmax of the scores: every unmasked position gets some weight.

    Bahdanau et al. 2015, "Neural Machine Translation by Jointly Learning to Align and
    Translate", §3.1; Luong et al. 2015, eq. 7.
    """

    def call(
        self,
        scores: Any,
        mask: Any = None,
        query: Any = None,
        position: Any = None,
        training: bool = False,
    ) -> Any:
        return ops.cast(masked_softmax(scores, mask), self.compute_dtype)


ALIGNMENTS: dict[str, type[Alignment]] = {"soft": SoftAlignment}
