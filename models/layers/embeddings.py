"""Embeddings: of the pieces of a text, and of points."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from models.layers.dropouts import Dropout
from models.serialization import register
from models.vocabulary import PAD


@register
class TokenEmbedding(keras.layers.Layer):
    """A vector a piece, with dropout; the same vectors can score pieces (`attend`).

    Vaswani et al. 2017 §3.4 multiply the vectors by the square root of their depth; Press and
    Wolf 2017 use the table once more as the output layer.

    Args:
        vocabulary: the number of pieces.
        depth: the size of a vector.
        dropout: the share of the numbers set to zero in training.
        scale: whether the vectors are multiplied by ``sqrt(depth)`` on their way in.

    Shapes: ids ``[batch, length]`` → ``[batch, length, depth]``.
    """

    def __init__(
        self,
        vocabulary: int,
        depth: int,
        dropout: float = 0.0,
        scale: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.vocabulary, self.depth, self.rate, self.scale = vocabulary, depth, dropout, scale
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)
        self._shared: Callable[[], Any] | None = None

    def share(self, other: TokenEmbedding) -> None:
        """Takes the table of another embedding, with which it then learns; the rest is its own.

        Raises:
            ValueError: this one is built, or the two differ in size.
        """
        if self.built:
            raise ValueError("An embedding can only be shared before it is built.")
        if (self.vocabulary, self.depth) != (other.vocabulary, other.depth):
            raise ValueError(
                f"An embedding of {other.vocabulary} pieces and depth {other.depth} cannot be "
                f"shared with one of {self.vocabulary} pieces and depth {self.depth}."
            )
        # A function, or Keras would take the other layer for a part of this one.
        self._shared = lambda: other.table

    def build(self, ids_shape: Any = None) -> None:
        """Makes the table; one that is shared must be there."""
        if self._shared is not None:
            self.table = self._shared()
        else:
            self.table = self.add_weight(
                name="table",
                shape=(self.vocabulary, self.depth),
                initializer=keras.initializers.RandomNormal(stddev=self.depth**-0.5),
            )
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        vectors = ops.take(ops.convert_to_tensor(self.table), ids, axis=0)
        vectors = ops.cast(vectors, self.compute_dtype)
        if self.scale:
            vectors = vectors * math.sqrt(self.depth)
        return self.dropout(vectors, training=training)

    def mask(self, ids: Any) -> Any:
        """Where there is a piece and no padding, ``[batch, length]``."""
        return ops.not_equal(ids, PAD)

    def attend(self, hidden: Any) -> Any:
        """Scores every piece by the product of its vector with a hidden state.

        The vectors are taken as they stand in the table, without ``scale``, so that a table drawn
        with variance ``1 / depth`` gives scores of variance one for states of variance one.

        Args:
            hidden: ``[..., depth]``.

        Returns:
            ``[..., vocabulary]`` in the compute dtype.

        Raises:
            ValueError: the states have another depth than the vectors.
        """
        if hidden.shape[-1] != self.depth:
            raise ValueError(
                f"states of depth {hidden.shape[-1]} cannot be scored by vectors of depth "
                f"{self.depth}: tied embeddings need one depth"
            )
        # Called from a decoder's methods, where Keras casts no variable by itself.
        table = ops.cast(ops.convert_to_tensor(self.table), self.compute_dtype)
        rows = ops.reshape(ops.cast(hidden, self.compute_dtype), (-1, self.depth))
        scores = ops.matmul(rows, ops.transpose(table))
        return ops.reshape(scores, (*ops.shape(hidden)[:-1], self.vocabulary))

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary": self.vocabulary,
            "depth": self.depth,
            "dropout": self.rate,
            "scale": self.scale,
        }


@register
class PointEmbedding(keras.layers.Layer):
    """A vector a point: a linear map of (x, y, 1), with dropout.

    Vinyals et al. 2015, "Pointer Networks", §3, where points go into the network as they are; the
    1 gives the map an offset, and its place tells padding apart, which gets a vector of zeros.

    Args:
        depth: the size of a vector.
        dropout: the share of the numbers set to zero in training.

    Shapes: points ``[batch, length, 3]``, the third number 1, or 0 at padding, which is zero
    altogether → ``[batch, length, depth]``.
    """

    def __init__(self, depth: int, dropout: float = 0.0, **kwargs: Any):
        super().__init__(**kwargs)
        self.depth, self.rate = depth, dropout
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, points_shape: Any = None) -> None:
        self.kernel = self.add_weight(
            name="kernel",
            shape=(3, self.depth),
            # Of points between -1 and 1 the vectors have numbers of that size too.
            initializer=keras.initializers.VarianceScaling(1.0, "fan_in", "uniform"),
        )
        self.built = True

    def call(self, points: Any, training: bool = False) -> Any:
        vectors = ops.matmul(points, ops.cast(self.kernel, self.compute_dtype))
        return self.dropout(vectors, training=training)

    def mask(self, points: Any) -> Any:
        """Where there is a point and no padding, ``[batch, length]``."""
        return points[..., 2] > 0.5

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "depth": self.depth, "dropout": self.rate}


def source_embedding(
    vocabulary: int | None, depth: int, dropout: float = 0.0, scale: bool = False, **kwargs: Any
) -> TokenEmbedding | PointEmbedding:
    """What an encoder reads with: pieces, or points where there is no vocabulary.

    Args:
        vocabulary: the number of pieces; None for points.
        depth: the size of a vector.
        dropout: the share of the numbers set to zero in training.
        scale: as in ``TokenEmbedding``; the vectors of points are of the right size already.
        kwargs: further arguments of the layer.
    """
    if vocabulary is None:
        return PointEmbedding(depth, dropout, **kwargs)
    return TokenEmbedding(vocabulary, depth, dropout, scale, **kwargs)
