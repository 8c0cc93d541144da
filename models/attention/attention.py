"""Attention as a weighted sum of values: a score, an alignment, a sum."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.attention.alignments import ALIGNMENTS
from models.attention.scores import SCORES
from models.serialization import by_name, register


@register
class Attention(keras.layers.Layer):
    """Looks at a memory with a query and sums what it sees.

    Any score goes with any alignment. A decoder that asks often about one memory calls
    ``prepare`` once and ``attend`` at every step; ``call`` does both.

    Args:
        score: a name in ``SCORES``.
        alignment: a name in ``ALIGNMENTS``.
        score_options: further arguments of the score.
        alignment_options: further arguments of the alignment.

    Shapes: query ``[batch, target, query_depth]``, memory ``[batch, source, depth]``, mask
    ``[batch, source]`` (true at real positions) or None. Gives the context ``[batch, target,
    depth]`` and the alignment weights ``[batch, target, source]``.

    Example:
        >>> attention = Attention(score="general", alignment="soft")
        >>> context, weights = attention(query, memory, mask=mask)
    """

    def __init__(
        self,
        score: str = "general",
        alignment: str = "soft",
        score_options: dict[str, Any] | None = None,
        alignment_options: dict[str, Any] | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {
            "score": score,
            "alignment": alignment,
            "score_options": dict(score_options or {}),
            "alignment_options": dict(alignment_options or {}),
        }
        self.score = by_name("score", SCORES, score)(
            **self.settings["score_options"], dtype=self.dtype_policy, name="score"
        )
        self.alignment = by_name("alignment", ALIGNMENTS, alignment)(
            **self.settings["alignment_options"], dtype=self.dtype_policy, name="alignment"
        )

    def build(
        self, query_shape: tuple[int | None, ...], memory_shape: tuple[int | None, ...]
    ) -> None:
        self.score.build(query_shape, memory_shape)
        self.alignment.build(query_shape)
        self.built = True

    def prepare(self, memory: Any, mask: Any = None) -> dict[str, Any]:
        """What ``attend`` needs of a memory, computed once."""
        if mask is None:
            mask = ops.ones(ops.shape(memory)[:2], dtype="bool")
        return {"keys": self.score.prepare(memory), "values": memory, "mask": mask}

    def attend(
        self, query: Any, prepared: dict[str, Any], position: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        """Context and weights for a query against a prepared memory.

        Args:
            query: ``[batch, target, query_depth]``.
            prepared: what ``prepare`` gave.
            position: which step of the decoder each query is, ``[batch or 1, target]``; by
                default the first, second, ... of the queries given.
            training: whether alignments that sample do so.
        """
        if position is None:
            position = ops.arange(ops.shape(query)[1])[None]
        weights = self.alignment(
            self.score.match(query, prepared["keys"]),
            mask=prepared["mask"][:, None, :],
            query=query,
            position=position,
            training=training,
        )
        return ops.matmul(weights, prepared["values"]), weights

    def call(
        self, query: Any, memory: Any, mask: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        return self.attend(query, self.prepare(memory, mask), training=training)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
