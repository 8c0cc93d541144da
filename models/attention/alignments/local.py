"""Alignments that look through a window, whose centre is the step itself or is predicted."""

from __future__ import annotations

from typing import Any

from keras import ops

from models.attention.alignments.base import Alignment, masked_softmax
from models.serialization import register


class LocalAlignment(Alignment):
    """Base of the windows: the positions s with \\|s - p\\| ≤ window around a centre p.

    Args:
        window: D, how far the window reaches to either side of its centre.

    Raises:
        ValueError: the window is below 1.
    """

    window: int

    def __init__(self, window: int = 10, **kwargs: Any):
        super().__init__(**kwargs)
        if window < 1:
            raise ValueError(f"A window must reach at least 1 to either side, not {window}.")
        self.window = window

    def centre(self, lengths: Any, query: Any, position: Any) -> Any:
        """Where the windows stand, ``[batch, target, 1]``, float32.

        Args:
            lengths: of the source, as ``lengths`` gives them.
            query: ``[batch, target, depth]``.
            position: ``[batch or 1, target]``.
        """
        raise TypeError(f"{type(self).__name__} does not say where its windows stand.")

    def weigh(self, scores: Any, mask: Any, away: Any) -> Any:
        """The weights of some positions, among them all that are inside of the windows.

        Args:
            scores: ``[batch, target, positions]``.
            mask: ``[batch, 1 or target, positions]``, or None.
            away: how far each position is from the centre, of the scores' shape.
        """
        inside = ops.abs(away) <= self.window
        if mask is not None:
            inside = ops.logical_and(inside, mask)
        return ops.cast(self._fade(masked_softmax(scores, inside), away), self.compute_dtype)

    def _fade(self, weights: Any, away: Any) -> Any:
        """What the distance from the centre makes of the softmax: by default nothing."""
        return weights

    def call(
        self,
        scores: Any,
        mask: Any = None,
        query: Any = None,
        position: Any = None,
        training: bool = False,
        drawn: Any = None,
    ) -> Any:
        if position is None:
            position = ops.arange(ops.shape(scores)[-2])[None]
        steps = ops.cast(ops.arange(ops.shape(scores)[-1]), "float32")
        away = steps - self.centre(lengths(scores, mask), query, position)
        return self.weigh(scores, mask, away)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "window": self.window}


@register
class LocalMAlignment(LocalAlignment):
    """The softmax in a window around the step's own position: monotonic, "local-m".

    Luong et al. 2015, §3.2. Steps beyond the source's end stay at its last position, so that a
    window is never empty. Arguments as in ``LocalAlignment``; without a position the queries are
    taken for the first steps.
    """

    def centre(self, lengths: Any, query: Any, position: Any) -> Any:
        last = ops.maximum(lengths - 1.0, 0.0)
        return ops.minimum(ops.cast(position, "float32")[..., None], last)


@register
class LocalPAlignment(LocalAlignment):
    """The softmax in a window around a predicted position, times a Gaussian: "local-p".

    Luong et al. 2015, §3.2, eqs. 9 and 10: p = S · sigmoid(v · tanh(W q)) with S the true length
    of the source, and align(q, k) · exp(-(s - p)² / 2σ²) with σ = D / 2. Positions count from 0.
    The Gaussian leaves the sum of the weights below 1, as in the paper.

    Args:
        window: D, how far the window reaches to either side of its centre.
        units: the width of the layer that predicts; None for the query's depth.

    Raises:
        ValueError: the window or the units are below 1.
    """

    def __init__(self, window: int = 10, units: int | None = None, **kwargs: Any):
        super().__init__(window, **kwargs)
        if units is not None and units < 1:
            raise ValueError(f"Predicting a position needs at least 1 unit, not {units}.")
        self.units = units

    def build(self, query_shape: tuple[int | None, ...]) -> None:
        width = self.units or query_shape[-1]
        self.kernel = self.add_weight(
            name="kernel", shape=(query_shape[-1], width), initializer="glorot_uniform"
        )
        self.vector = self.add_weight(name="vector", shape=(width, 1), initializer="glorot_uniform")
        super().build(query_shape)

    def centre(self, lengths: Any, query: Any, position: Any) -> Any:
        hidden = ops.tanh(ops.matmul(query, ops.cast(self.kernel, self.compute_dtype)))
        predicted = ops.matmul(hidden, ops.cast(self.vector, self.compute_dtype))
        return lengths * ops.sigmoid(ops.cast(predicted, "float32"))

    def _fade(self, weights: Any, away: Any) -> Any:
        return weights * ops.exp(-2.0 * ops.square(away / self.window))  # 1 / 2σ² = 2 / D²

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}


def lengths(scores: Any, mask: Any = None) -> Any:
    """The true lengths of the source: ``[batch, 1 or target, 1]``, float32.

    A length ends with the last position that is not masked.
    """
    count = ops.cast(ops.arange(ops.shape(scores)[-1]) + 1, "float32")
    if mask is None:
        return ops.max(count)[None, None, None]
    return ops.max(ops.cast(mask, "float32") * count, axis=-1, keepdims=True)
