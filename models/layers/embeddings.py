"""Embeddings of tokens, and of points or other vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from regard.models.layers.dropout import Dropout
from regard.models.serialization import ConfiguredLayer, constructor_arguments, register
from regard.models.tensors import Memory, Tensor
from regard.models.vocabulary import PAD, UNK


@register
class TokenEmbedding(ConfiguredLayer):
    """One vector per token, with dropout; the same matrix can compute logits (``attend``).

    Vaswani et al. 2017, §3.4, multiply the vectors by the square root of their depth; Press and
    Wolf 2017 also use the matrix as output layer. An id after the vocabulary, which ``Copying``
    uses for an unknown token of a source, gets the vector of ``UNK``.

    Args:
        vocabulary: the size of the vocabulary.
        depth: the size of a vector.
        dropout: the dropout rate.
        scale: whether vectors are multiplied by ``sqrt(depth)``.

    Shapes: ids ``[batch, length]`` → ``[batch, length, depth]``.
    """

    def __init__(
        self, vocabulary: int, depth: int, dropout: float = 0.0, scale: bool = False, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
        self.vocabulary, self.depth, self.scale = vocabulary, depth, scale
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)
        self._shared: Callable[[], Any] | None = None

    def share(self, other: TokenEmbedding) -> None:
        """Use the matrix of another embedding.

        Raises:
            ValueError: this embedding is built, or the two differ in size.
        """
        if self.built:
            raise ValueError("An embedding can only be shared before it is built.")
        if (self.vocabulary, self.depth) != (other.vocabulary, other.depth):
            raise ValueError(
                f"An embedding of {other.vocabulary} tokens with depth {other.depth} cannot be "
                f"shared with one of {self.vocabulary} tokens with depth {self.depth}."
            )
        # A function, so that Keras does not track the other layer as a sublayer.
        self._shared = lambda: other.table

    def build(self, ids_shape: Any = None) -> None:
        """Create the matrix; a shared one must exist."""
        if self._shared is not None:
            self.table = self._shared()
        else:
            self.table = self.add_weight(
                name="table",
                shape=(self.vocabulary, self.depth),
                initializer=keras.initializers.RandomNormal(stddev=self.depth**-0.5),
            )

    def call(self, ids: Tensor, training: bool = False) -> Tensor:
        ids = ops.where(ids < self.vocabulary, ids, UNK)
        vectors = ops.take(ops.convert_to_tensor(self.table), ids, axis=0)
        vectors = ops.cast(vectors, self.compute_dtype)
        if self.scale:
            vectors = vectors * math.sqrt(self.depth)
        return self.dropout(vectors, training=training)

    def mask(self, ids: Tensor) -> Tensor:
        """Return which ids are not padding, ``[batch, length]``."""
        return ops.not_equal(ids, PAD)

    def columns(self) -> Tensor:
        """Return all vectors as columns, ``[depth, vocabulary]`` in the compute dtype."""
        # Called outside of ``__call__``, where Keras does not cast variables.
        return ops.transpose(ops.cast(ops.convert_to_tensor(self.table), self.compute_dtype))

    def attend(self, hidden: Tensor, columns: Tensor = None) -> Tensor:
        """Return the product of hidden states with all vectors.

        ``scale`` is not applied, so a matrix with variance ``1 / depth`` gives logits of variance
        1 for states of variance 1.

        Args:
            hidden: ``[..., depth]``.
            columns: the result of ``columns``, if it has been computed before.

        Returns:
            ``[..., vocabulary]`` in the compute dtype.
        """
        rows = ops.reshape(ops.cast(hidden, self.compute_dtype), (-1, self.depth))
        scores = ops.matmul(rows, self.columns() if columns is None else columns)
        return ops.reshape(scores, (*ops.shape(hidden)[:-1], self.vocabulary))


@register
class PointEmbedding(ConfiguredLayer):
    """One vector per point: a linear map of (x, y, ..., 1), with dropout.

    Vinyals et al. 2015, "Pointer Networks", §3, where points are direct inputs of the network. The
    1 adds an offset and distinguishes points from padding, which gets a zero vector.

    Args:
        depth: the size of a vector.
        dropout: the dropout rate.
        dimensions: the number of coordinates of a point.

    Shapes: points ``[batch, length, dimensions + 1]``, (x, y, ..., 1) or zeros for padding →
    ``[batch, length, depth]``.
    """

    def __init__(self, depth: int, dropout: float = 0.0, dimensions: int = 2, **kwargs: Any):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
        self.depth, self.dimensions = depth, dimensions
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, points_shape: Any = None) -> None:
        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.dimensions + 1, self.depth),
            # Points between -1 and 1 get vectors of the same magnitude.
            initializer=keras.initializers.VarianceScaling(1.0, "fan_in", "uniform"),
        )

    def call(self, points: Tensor, training: bool = False) -> Tensor:
        vectors = ops.matmul(points, ops.cast(self.kernel, self.compute_dtype))
        return self.dropout(vectors, training=training)

    def mask(self, points: Tensor) -> Tensor:
        """Return which points are not padding, ``[batch, length]``."""
        return points[..., -1] > 0.5


@register
class MemoryInput(ConfiguredLayer):
    """Stands for the embedding of an encoder that reads the memory of another one.

    Shapes: a memory with ``values`` ``[batch, length, depth]`` → its values.
    """

    def build(self, memory_shape: Any = None) -> None:
        self.built = True

    def call(self, memory: Memory, training: bool = False) -> Tensor:
        return memory["values"]

    def mask(self, memory: Memory) -> Tensor:
        """Return which positions are not padding, ``[batch, length]``."""
        return memory["mask"]


def source_embedding(
    vocabulary: int | None,
    depth: int,
    dropout: float = 0.0,
    scale: bool = False,
    dimensions: int = 2,
    **kwargs: Any,
) -> TokenEmbedding | PointEmbedding | MemoryInput:
    """Return an encoder's embedding of tokens or points, or its input from another encoder.

    Args:
        vocabulary: the size of the vocabulary; None for points; 0 for the memory of an encoder.
        depth: the size of a vector.
        dropout: the dropout rate.
        scale: as in ``TokenEmbedding``; ignored for points and memories.
        dimensions: the number of coordinates of a point.
        kwargs: further arguments of the layer.
    """
    if vocabulary == 0:
        return MemoryInput(**kwargs)
    if vocabulary is None:
        return PointEmbedding(depth, dropout, dimensions, **kwargs)
    return TokenEmbedding(vocabulary, depth, dropout, scale, **kwargs)
