"""Scores that are a product of the query with the key."""

from __future__ import annotations

import math
from typing import Any

import keras
from keras import ops

from models.attention.scores.base import Score, Shape, need_one_depth
from models.serialization import register


@register
class DotScore(Score):
    """q · k.

    Luong et al. 2015, "Effective Approaches to Attention-based Neural Machine Translation",
    §3.1, "dot".

    Raises:
        ValueError: query and keys differ in depth.
    """

    def build(self, query_shape: Shape, keys_shape: Shape) -> None:
        need_one_depth("dot", query_shape, keys_shape)
        super().build(query_shape, keys_shape)


@register
class ScaledDotScore(Score):
    """q · k / √d, with d the depth of both.

    Vaswani et al. 2017, "Attention Is All You Need", §3.2.1.

    Raises:
        ValueError: query and keys differ in depth.
    """

    def build(self, query_shape: Shape, keys_shape: Shape) -> None:
        need_one_depth("scaled_dot", query_shape, keys_shape)
        super().build(query_shape, keys_shape)

    def match(self, query: Any, prepared: Any) -> Any:
        # Scaled before the product, which then overflows float16 only for larger numbers.
        return super().match(query * query.shape[-1] ** -0.5, prepared)


@register
class GeneralScore(Score):
    """q · W k, a bilinear form; the depths may differ.

    Luong et al. 2015, §3.1, "general". W k is computed once a sentence. The weight is W times the
    root of the query's depth, and begins orthogonal: so the scores begin as those of ``scaled_dot``
    do, and one step of Adam, which moves every number of a weight alike, moves them as little.
    """

    def build(self, query_shape: Shape, keys_shape: Shape) -> None:
        self.kernel = self.add_weight(
            name="kernel",
            shape=(keys_shape[-1], query_shape[-1]),
            initializer="orthogonal",
        )
        super().build(query_shape, keys_shape)

    def prepare(self, keys: Any) -> Any:
        return ops.matmul(keys, self._cast(self.kernel) * self.kernel.shape[1] ** -0.5)


@register
class CosineScore(Score):
    """exp(τ) · cos(q, k), with a learned τ: a temperature that stays positive.

    Graves et al. 2014, "Neural Turing Machines", §3.3.1, where each head emits its key strength;
    here it is a weight. A vector of zeros has the cosine 0 with all others.

    Args:
        strength: the factor exp(τ) at the beginning.

    Raises:
        ValueError: query and keys differ in depth; or the strength is not positive.
    """

    def __init__(self, strength: float = 10.0, **kwargs: Any):
        super().__init__(**kwargs)
        if strength <= 0:
            raise ValueError(f"The strength of the score 'cosine' must be above 0, not {strength}.")
        self.strength = strength

    def build(self, query_shape: Shape, keys_shape: Shape) -> None:
        need_one_depth("cosine", query_shape, keys_shape)
        self.temperature = self.add_weight(
            name="temperature",
            shape=(),
            initializer=keras.initializers.Constant(math.log(self.strength)),
        )
        super().build(query_shape, keys_shape)

    def prepare(self, keys: Any) -> Any:
        return self._normal(keys)

    def match(self, query: Any, prepared: Any) -> Any:
        strength = ops.exp(ops.cast(self.temperature, "float32"))
        return super().match(self._cast(self._normal(query) * self._cast(strength)), prepared)

    def _normal(self, vectors: Any) -> Any:
        """Vectors of length 1; squares are summed in float32, since float16 ends at 65504."""
        wide = ops.cast(vectors, "float32")
        square = ops.sum(ops.square(wide), axis=-1, keepdims=True)
        return self._cast(wide * ops.rsqrt(ops.maximum(square, 1e-12)))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "strength": self.strength}
