"""Penalties on attention weights in the training loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from keras import ops

from regard.models.tensors import Tensor


def doubly_stochastic(alignment: Tensor, source_mask: Tensor, target_mask: Tensor) -> Tensor:
    """Return Σ_i (1 - Σ_t a_ti)²: each source position should get a total weight of 1.

    Xu et al. 2015, "Show, Attend and Tell", §4.2.1 (eq. 14).

    Shapes: alignment ``[batch, target, source]``, source_mask ``[batch, source]``, target_mask
    ``[batch, target]``, 1 at tokens and 0 at padding → ``[batch]``, float32.
    """
    totals = ops.sum(ops.cast(alignment, "float32") * target_mask[..., None], axis=1)
    return ops.sum(ops.square(1.0 - totals) * ops.cast(source_mask, "float32"), axis=-1)


def coverage(alignment: Tensor, source_mask: Tensor, target_mask: Tensor) -> Tensor:
    """Return Σ_t Σ_i min(a_ti, c_ti), where c_ti is the previous total weight of position i.

    See et al. 2017, "Get To The Point: Summarization with Pointer-Generator Networks", §2.3
    (eq. 12). Shapes as in ``doubly_stochastic``.
    """
    weights = ops.cast(alignment, "float32") * target_mask[..., None]
    previous = ops.cumsum(weights, axis=1) - weights
    return ops.sum(ops.minimum(weights, previous), axis=(1, 2))


PENALTIES: Mapping[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = MappingProxyType(
    {"doubly_stochastic": doubly_stochastic, "coverage": coverage}
)


def penalty(
    weights: Mapping[str, float], alignment: Tensor, source_mask: Tensor, target_mask: Tensor
) -> Tensor:
    """Return the weighted sum of penalties per target token, like the loss."""
    total = sum(
        (
            weight * PENALTIES[name](alignment, source_mask, target_mask)
            for name, weight in weights.items()
        ),
        ops.zeros_like(target_mask[:, 0]),
    )
    return ops.sum(total) / ops.maximum(ops.sum(target_mask), 1.0)
