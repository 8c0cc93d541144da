"""Positions inside of self-attention: they depend on the distance of a key from a query."""

import math
from typing import Any

from keras import ops

from regard.models.serialization import ConfiguredLayer, constructor_arguments, register
from regard.models.tensors import Tensor


class RelativePositions(ConfiguredLayer):
    """Base class of what self-attention adds to the scores, and to the sums of the values.

    Args:
        heads: the number of heads.
        depth: the depth of a head.
        max_distance: the distance from which vectors are equal, for ``ShawPositions``.

    Shapes: a distance is the position of the key minus that of the query, ``[target, source]``.
    """

    def __init__(self, heads: int, depth: int, max_distance: int = 16, **kwargs: Any):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
        self.heads, self.depth, self.max_distance = heads, depth, max_distance

    def build(self, query_shape: Any = None) -> None:
        """Create the weights, if there are any."""
        self.built = True

    def scores(self, query: Tensor, distance: Tensor) -> Tensor:
        """Return what is added to the scores, in float32, for ``[batch, heads, target, source]``.

        Args:
            query: ``[batch, heads, target, depth]``.
            distance: see the class.
        """
        raise TypeError(f"{type(self).__name__} does not implement scores.")

    def contexts(self, weights: Tensor, distance: Tensor) -> Tensor:
        """Return what is added to the contexts, ``[batch, heads, target, depth]``, or 0.

        Args:
            weights: ``[batch, heads, target, source]``.
            distance: see the class.
        """
        return 0.0


@register
class ShawPositions(RelativePositions):
    """Add a learned vector per distance to the keys and to the values.

    Shaw et al. 2018, "Self-Attention with Relative Position Representations", §3.1 (eq. 3-4):
    e_ij = q_i (k_j + a^K_{j-i}) / sqrt(d), z_i = sum of α_ij (v_j + a^V_{j-i}), where distances are
    clipped to ``max_distance`` (§3.2). The heads of a layer share the vectors (§3.3).
    """

    def build(self, query_shape: Any = None) -> None:
        shape = (2 * self.max_distance + 1, self.depth)
        self.keys = self.add_weight(name="keys", shape=shape, initializer="glorot_uniform")
        self.values = self.add_weight(name="values", shape=shape, initializer="glorot_uniform")
        super().build(query_shape)

    def scores(self, query: Tensor, distance: Tensor) -> Tensor:
        vectors = self._take(self.keys, distance, query.dtype)
        scores = ops.einsum("bhtd,tsd->bhts", query * self.depth**-0.5, vectors)
        return ops.cast(scores, "float32")

    def contexts(self, weights: Tensor, distance: Tensor) -> Tensor:
        vectors = self._take(self.values, distance, weights.dtype)
        return ops.einsum("bhts,tsd->bhtd", weights, vectors)

    def _take(self, table: Any, distance: Tensor, dtype: Any) -> Tensor:
        """Return the vectors of distances, ``[..., depth]``."""
        clipped = ops.clip(distance, -self.max_distance, self.max_distance)
        vectors = ops.take(ops.convert_to_tensor(table), clipped + self.max_distance, axis=0)
        return ops.cast(vectors, dtype)


@register
class AlibiPositions(RelativePositions):
    """Subtract a multiple of the distance from the scores.

    Press et al. 2022, "Train Short, Test Long: Attention with Linear Biases Enables Input Length
    Extrapolation", §3: -m |i - j|, where m is 2^(-8/n), 2^(-16/n), ... for n heads. For other n
    than powers of 2, the authors' program adds every second m of twice the number of heads. An
    encoder, which also attends to later positions, uses the same bias in both directions.
    """

    def scores(self, query: Tensor, distance: Tensor) -> Tensor:
        slopes = ops.convert_to_tensor(_slopes(self.heads), dtype="float32")[:, None, None]
        return -slopes * ops.cast(ops.abs(distance), "float32")


def distances(scores: Tensor) -> Any:
    """Return the position of each key minus that of each query for ``[..., target, source]``."""
    target, source = ops.shape(scores)[-2:]
    return ops.arange(source)[None] - ops.arange(target)[:, None]


def _slopes(heads: int) -> list[float]:
    """Return the m of each head."""
    power = 2 ** int(math.log2(heads))
    slopes = [2.0 ** (-8.0 * (i + 1) / power) for i in range(power)]
    return slopes if power == heads else slopes + _slopes(2 * power)[::2][: heads - power]


RELATIVE_POSITIONS: dict[str, type[RelativePositions]] = {
    "alibi": AlibiPositions,
    "relative": ShawPositions,
}
