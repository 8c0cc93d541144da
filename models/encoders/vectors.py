"""The plainest encoder: the vectors of the pieces themselves."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.layers.embeddings import TokenEmbedding
from models.serialization import register
from models.vocabulary import PAD


@register
class VectorsEncoder(keras.layers.Layer):
    """Gives each piece its embedding and nothing else, whatever stands beside it.

    With a pooling by mean on top it is the average of word vectors, which sentence encoders are
    compared with (Wieting et al. 2016, "Towards Universal Paraphrastic Sentence Embeddings").

    Args:
        vocabulary: the number of pieces.
        embedding: the depth of the embeddings, and of the memory.
        dropout: the share dropped of them.
        scale: multiply them by the root of their depth, as in ``RecurrentEncoder``.

    Shapes: ids ``[batch, source]`` → a memory, a dictionary of ``values`` ``[batch, source,
    embedding]`` (zero at padding) and ``mask`` ``[batch, source]``.
    """

    # There are no final states.
    final_depth = 0

    def __init__(
        self,
        vocabulary: int,
        embedding: int = 256,
        dropout: float = 0.0,
        scale: bool = True,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {
            "vocabulary": vocabulary,
            "embedding": embedding,
            "dropout": dropout,
            "scale": scale,
        }
        self.embedding = TokenEmbedding(
            vocabulary, embedding, dropout, scale, dtype=self.dtype_policy, name="embedding"
        )

    @property
    def depth(self) -> int:
        """The depth of the memory."""
        return int(self.settings["embedding"])

    def build(self, ids_shape: Any = None) -> None:
        if not self.embedding.built:
            self.embedding.build()
        self.built = True

    def call(self, ids: Any, training: bool = False) -> dict[str, Any]:
        mask = ops.not_equal(ids, PAD)
        values = self.embedding(ids, training=training)
        return {"values": values * ops.cast(mask[..., None], values.dtype), "mask": mask}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
