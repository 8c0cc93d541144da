"""What a training can hold against the way a model looks at its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from keras import ops


def doubly_stochastic(alignment: Any, mask: Any, real: Any) -> Any:
    """Σ_i (1 - Σ_t a_ti)² over the source: every position wants to be seen once in all.

    Xu et al. 2015, "Show, Attend and Tell", §4.2.1 (eq. 14).

    Shapes: alignment ``[batch, target, source]``, mask ``[batch, source]``, true at real source
    positions, real ``[batch, target]``, 1 at real pieces → ``[batch]``, float32.
    """
    seen = ops.sum(ops.cast(alignment, "float32") * real[..., None], axis=1)
    return ops.sum(ops.square(1.0 - seen) * ops.cast(mask, "float32"), axis=-1)


def coverage(alignment: Any, mask: Any, real: Any) -> Any:
    """Σ_t Σ_i min(a_ti, c_ti), where c_ti is what position i was seen before: not again.

    See et al. 2017, "Get To The Point: Summarization with Pointer-Generator Networks", §2.3
    (eq. 12). Shapes as in ``doubly_stochastic``.
    """
    weights = ops.cast(alignment, "float32") * real[..., None]
    before = ops.cumsum(weights, axis=1) - weights
    return ops.sum(ops.minimum(weights, before), axis=(1, 2))


PENALTIES: Mapping[str, Callable[[Any, Any, Any], Any]] = MappingProxyType(
    {"doubly_stochastic": doubly_stochastic, "coverage": coverage}
)


def penalty(weights: Mapping[str, float], alignment: Any, mask: Any, real: Any) -> Any:
    """All penalties with their weights, a mean over the real pieces like the loss itself."""
    total = sum(
        (weight * PENALTIES[name](alignment, mask, real) for name, weight in weights.items()),
        ops.zeros_like(real[:, 0]),
    )
    return ops.sum(total) / ops.maximum(ops.sum(real), 1.0)
