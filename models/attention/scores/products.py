"""Scores that are products of query and key."""

import math
from typing import Any

import keras
from keras import ops

from regard.core.bounds import PositiveFloat, Size
from regard.models.attention.scores.base import Score, Shape
from regard.models.serialization import checked_arguments, choice
from regard.models.tensors import Tensor


@choice("dot")
class DotScore(Score):
    """q·k for equal widths (Luong 2015).

    Luong et al. 2015, "Effective Approaches to Attention-based Neural Machine Translation",
    §3.1, "dot".

    Raises:
        ValueError: query and keys differ in depth.
    """

    needs_equal_depths = True


@choice("scaled_dot")
class ScaledDotScore(Score):
    """q·k / √width for equal widths (Vaswani 2017).

    Vaswani et al. 2017, "Attention Is All You Need", §3.2.1.

    Raises:
        ValueError: query and keys differ in depth.
    """

    needs_equal_depths = True

    def match(self, query: Tensor, prepared: Tensor) -> Tensor:
        # Scaling before the product makes an overflow of float16 less likely.
        return super().match(query * query.shape[-1] ** -0.5, prepared)


@choice("general")
class GeneralScore(Score):
    """q·Wk / √width (Luong 2015, without the scale).

    Luong et al. 2015, §3.1, "general": a bilinear form; the depths may differ. W k is computed once
    per sentence. The weight is W times the square root of the query's depth with an orthogonal
    initial value, so that the initial scores, and their change in one step of Adam, are as large as
    those of ``scaled_dot``.
    """

    def build(self, query_shape: Shape, keys_shape: Shape) -> None:
        self.kernel = self.add_weight(
            name="kernel", shape=(keys_shape[-1], query_shape[-1]), initializer="orthogonal"
        )
        super().build(query_shape, keys_shape)

    def prepare(self, keys: Tensor) -> Tensor:
        return ops.matmul(keys, self._cast(self.kernel) * self.kernel.shape[1] ** -0.5)


@choice("low_rank")
class LowRankScore(Score):
    """Aq·Bk / √rank, general with a matrix of low rank (Kim 2017).

    Kim et al. 2017, "Hadamard Product for Low-rank Bilinear Pooling", §2: a bilinear form q · W k
    with W = AᵀB; the depths may differ. It needs ``rank * (query_depth + key_depth)`` weights
    instead of ``query_depth * key_depth``. B k is computed once per sentence. The scale is that of
    ``scaled_dot``, as in ``GeneralScore``.

    Args:
        rank: Rank of the matrix.
    """

    def __init__(self, rank: Size = 64, **kwargs: Any):
        super().__init__(**kwargs)
        self.settings = checked_arguments(locals())
        self.rank = rank

    def build(self, query_shape: Shape, keys_shape: Shape) -> None:
        self.query_kernel, self.key_kernel = (
            self.add_weight(name=name, shape=(shape[-1], self.rank), initializer="orthogonal")
            for name, shape in (("query_kernel", query_shape), ("key_kernel", keys_shape))
        )
        super().build(query_shape, keys_shape)

    def prepare(self, keys: Tensor) -> Tensor:
        return ops.matmul(keys, self._cast(self.key_kernel) * self.rank**-0.5)

    def match(self, query: Tensor, prepared: Tensor) -> Tensor:
        return super().match(ops.matmul(query, self._cast(self.query_kernel)), prepared)


@choice("cosine")
class CosineScore(Score):
    """Cosine of q and k times a learned temperature, for equal widths (Graves 2014).

    Graves et al. 2014, "Neural Turing Machines", §3.3.1: exp(τ) · cos(q, k). There each head emits
    its key strength; here it is a weight. The cosine with a zero vector is 0.

    Args:
        strength: the initial value of exp(τ).
    """

    needs_equal_depths = True
    undecayed = ("temperature",)

    def __init__(self, *, strength: PositiveFloat = 10.0, **kwargs: Any):
        super().__init__(**kwargs)
        self.settings = checked_arguments(locals())
        self.strength = strength

    def build(self, query_shape: Shape, keys_shape: Shape) -> None:
        self.temperature = self.add_weight(
            name="temperature",
            shape=(),
            initializer=keras.initializers.Constant(math.log(self.strength)),
        )
        super().build(query_shape, keys_shape)

    def prepare(self, keys: Tensor) -> Tensor:
        return self._normalize(keys)

    def match(self, query: Tensor, prepared: Tensor) -> Tensor:
        strength = ops.exp(ops.cast(self.temperature, "float32"))
        return super().match(self._cast(self._normalize(query) * self._cast(strength)), prepared)

    def _normalize(self, vectors: Tensor) -> Tensor:
        """Return vectors of length 1; squares are summed in float32 to avoid an overflow."""
        wide = ops.cast(vectors, "float32")
        square = ops.sum(ops.square(wide), axis=-1, keepdims=True)
        return self._cast(wide * ops.rsqrt(ops.maximum(square, 1e-12)))
