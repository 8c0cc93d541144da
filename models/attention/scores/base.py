"""What every score is: two methods, one called once a sentence and one at every step."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

Shape = tuple[int | None, ...]


class Score(keras.layers.Layer):
    """Base of the scores: ``score(query, keys)``, or ``prepare`` once and ``match`` often.

    What depends on the keys alone belongs into ``prepare``, which a decoder calls once a sentence
    and not once a step.

    Shapes: query ``[..., target, query_depth]``, keys ``[..., source, key_depth]``, scores
    ``[..., target, source]``; what stands for the dots is ``batch``, or ``batch, heads``.
    """

    def build(self, query_shape: Shape, keys_shape: Shape) -> None:
        """Makes the weights; both depths (the last dimensions) must be known."""
        self.built = True

    def prepare(self, keys: Any) -> Any:
        """What ``match`` needs of the keys, computed once: ``[..., source, depth]``."""
        return keys

    def match(self, query: Any, prepared: Any) -> Any:
        """The scores ``[..., target, source]`` of a query against prepared keys."""
        return ops.matmul(query, ops.swapaxes(prepared, -1, -2))

    def match_at(self, query: Any, prepared: Any, places: Any) -> Any:
        """The scores of each query against some of the keys alone.

        Args:
            query: ``[batch, target, query_depth]``.
            prepared: what ``prepare`` gave.
            places: which keys, ``[batch, target, positions]``.

        Returns:
            ``[batch, target, positions]``.
        """
        return self.match(query[..., None, :], rows_at(prepared, places))[..., 0, :]

    def reach(self, mask: Any) -> Any:
        """The part of a mask ``[..., source]`` that this score can tell apart: mostly all."""
        return mask

    def call(self, query: Any, keys: Any) -> Any:
        return self.match(query, self.prepare(keys))

    def _cast(self, weight: Any) -> Any:
        """A weight in the dtype of computation, also where no ``__call__`` casts it."""
        return ops.cast(weight, self.compute_dtype)


def rows_at(rows: Any, places: Any) -> Any:
    """Rows ``[batch or 1, source, ...]`` at ``[batch, ...]`` places, as ``[batch, ..., ...]``."""
    batch, source, *rest = ops.shape(rows)
    if rows.shape[0] != 1:  # what all of a batch share begins at 0 for everyone
        first = ops.arange(batch, dtype="int32") * source
        places = places + ops.reshape(first, (-1, *[1] * (len(places.shape) - 1)))
    return ops.take(ops.reshape(rows, (-1, *rest)), places, axis=0)


def need_one_depth(name: str, query_shape: Shape, keys_shape: Shape) -> None:
    """Refuses queries and keys that differ in depth.

    Raises:
        ValueError: they do; the text names the score and both depths.
    """
    if query_shape[-1] != keys_shape[-1]:
        raise ValueError(
            f"The score {name!r} needs queries and keys of one depth, but they have "
            f"{query_shape[-1]} and {keys_shape[-1]}. Use 'general', or make them equal."
        )
