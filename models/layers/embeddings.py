"""Token embeddings."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.serialization import register


@register
class TokenEmbedding(keras.layers.Layer):
    """A vector a piece, with dropout.

    Args:
        vocabulary: the number of pieces.
        depth: the size of a vector.
        dropout: the share of the numbers set to zero in training.

    Shapes: ids ``[batch, length]`` → ``[batch, length, depth]``.
    """

    def __init__(self, vocabulary: int, depth: int, dropout: float = 0.0, **kwargs: Any):
        super().__init__(**kwargs)
        self.vocabulary, self.depth, self.rate = vocabulary, depth, dropout
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def build(self, ids_shape: Any = None) -> None:
        self.table = self.add_weight(
            name="table",
            shape=(self.vocabulary, self.depth),
            initializer=keras.initializers.RandomNormal(stddev=self.depth**-0.5),
        )
        self.built = True

    def call(self, ids: Any, training: bool = False) -> Any:
        vectors = ops.take(ops.convert_to_tensor(self.table), ids, axis=0)
        return self.dropout(ops.cast(vectors, self.compute_dtype), training=training)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary": self.vocabulary,
            "depth": self.depth,
            "dropout": self.rate,
        }
