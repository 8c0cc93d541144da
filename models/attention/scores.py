"""Scores: how well a query matches each key.

A new score is one class here and one line in ``SCORES``. What depends on the keys alone belongs
into ``prepare``, which a decoder calls once a sentence and not once a step.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.serialization import register


class Score(keras.layers.Layer):
    """Base of the scores: ``score(query, keys)``, or ``prepare`` once and ``match`` often.

    Shapes: query ``[batch, target, query_depth]``, keys ``[batch, source, key_depth]``, scores
    ``[batch, target, source]``.
    """

    def build(
        self, query_shape: tuple[int | None, ...], keys_shape: tuple[int | None, ...]
    ) -> None:
        """Makes the weights; both depths (the last dimensions) must be known."""
        self.built = True

    def prepare(self, keys: Any) -> Any:
        """What ``match`` needs of the keys, computed once: ``[batch, source, depth]``."""
        return keys

    def match(self, query: Any, prepared: Any) -> Any:
        """The scores ``[batch, target, source]`` of a query against prepared keys."""
        return ops.matmul(query, ops.swapaxes(prepared, -1, -2))

    def call(self, query: Any, keys: Any) -> Any:
        return self.match(query, self.prepare(keys))


@register
class DotScore(Score):
    """q · k.

    Luong et al. 2015, "Effective Approaches to Attention-based Neural Machine Translation",
    §3.1, "dot".

    Raises:
        ValueError: query and keys differ in depth.
    """

    def build(
        self, query_shape: tuple[int | None, ...], keys_shape: tuple[int | None, ...]
    ) -> None:
        if query_shape[-1] != keys_shape[-1]:
            raise ValueError(
                f"The score 'dot' needs queries and keys of one depth, but they have "
                f"{query_shape[-1]} and {keys_shape[-1]}. Use 'general', or make them equal."
            )
        super().build(query_shape, keys_shape)


@register
class GeneralScore(Score):
    """q · W k, a bilinear form; the depths may differ.

    Luong et al. 2015, §3.1, "general". W k is computed once a sentence.
    """

    def build(
        self, query_shape: tuple[int | None, ...], keys_shape: tuple[int | None, ...]
    ) -> None:
        self.kernel = self.add_weight(
            name="kernel",
            shape=(keys_shape[-1], query_shape[-1]),
            initializer="glorot_uniform",
        )
        super().build(query_shape, keys_shape)

    def prepare(self, keys: Any) -> Any:
        return ops.matmul(keys, self.kernel)


SCORES: dict[str, type[Score]] = {"dot": DotScore, "general": GeneralScore}
