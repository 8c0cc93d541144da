"""What every alignment is, and the softmax that most are made of."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

MASKED = -1e9  # the score of what is masked, below all others and still a number


class Alignment(keras.layers.Layer):
    """Base of the alignments: ``alignment(scores, mask)`` gives weights of the scores' shape.

    Shapes: scores and weights ``[batch, target, source]``; mask ``[batch, 1 or target, source]``,
    true where the source may be looked at, or None. Weights are at least 0, and exactly 0 where
    the mask is false; where all is masked they are all 0. For alignments that predict where to
    look there are the query ``[batch, target, depth]`` and its position among the decoder's
    steps, ``[batch or 1, target]``; for those that sample there is what ``draw`` gave.

    Attributes:
        stochastic: whether weights are drawn in training so that gradients reach the scores only
            by a reward (see ``models.reinforce``).
        window: how far to either side of a centre there can be weight (see ``LocalAlignment``);
            None: anywhere.
    """

    stochastic: bool = False
    window: int | None = None

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.supports_masking = True  # the mask is an argument, not Keras's hidden one

    def build(self, query_shape: tuple[int | None, ...]) -> None:
        """Makes the weights, for those that have any; the query's depth must be known."""
        self.built = True

    def draw(self) -> Any:
        """What the random numbers of one sequence are made of, or None where none are needed.

        Drawn once outside of a decoder's loop it serves all of its steps: generators have a
        state, and a loop's body must not change what stands outside of it.
        """
        return None

    def call(
        self,
        scores: Any,
        mask: Any = None,
        query: Any = None,
        position: Any = None,
        training: bool = False,
        drawn: Any = None,
    ) -> Any:
        raise TypeError(f"{type(self).__name__} does not say how scores become weights.")

    def look(
        self,
        scores: Any,
        mask: Any = None,
        query: Any = None,
        position: Any = None,
        training: bool = False,
        drawn: Any = None,
    ) -> tuple[Any, Any]:
        """The weights, and the distribution they were drawn from: by default themselves."""
        weights = self(
            scores, mask=mask, query=query, position=position, training=training, drawn=drawn
        )
        return weights, weights


def masked_softmax(scores: Any, mask: Any = None) -> Any:
    """A softmax over the last axis in float32; where all is masked the weights are all zero."""
    scores = ops.cast(scores, "float32")
    if mask is None:
        return ops.softmax(scores, axis=-1)
    # Not minus infinity: a row without any true entry must give zeros and no NaN, in the
    # gradient too.
    scores = ops.where(mask, scores, MASKED)
    peak = ops.stop_gradient(ops.max(scores, axis=-1, keepdims=True, initial=MASKED))
    weights = ops.exp(scores - peak) * ops.cast(mask, "float32")
    total = ops.sum(weights, axis=-1, keepdims=True)
    return weights / ops.maximum(total, 1e-9)
