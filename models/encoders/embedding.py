"""The simplest encoder: the embeddings of the tokens."""

from __future__ import annotations

from typing import Any

from keras import ops

from regard.models.layers.embeddings import TokenEmbedding
from regard.models.serialization import ConfiguredLayer, constructor_arguments, register
from regard.models.tensors import Memory, Tensor
from regard.models.vocabulary import PAD


@register
class EmbeddingEncoder(ConfiguredLayer):
    """Return the embedding of each token, independent of its context.

    With mean pooling this is the average of word vectors, a common baseline of sentence encoders
    (Wieting et al. 2016, "Towards Universal Paraphrastic Sentence Embeddings").

    Args:
        vocabulary: the size of the vocabulary.
        embedding: the depth of the embeddings and of the memory.
        dropout: the dropout rate of the embeddings.
        scale: multiply them by the square root of their depth, as in ``RecurrentEncoder``.

    Shapes: ids ``[batch, source]`` → a memory, a dictionary of ``values`` ``[batch, source,
    embedding]`` (zero at padding) and ``mask`` ``[batch, source]``.
    """

    final_depth = 0  # there are no final states

    def __init__(
        self,
        vocabulary: int,
        embedding: int = 256,
        dropout: float = 0.0,
        scale: bool = True,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
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

    def call(self, ids: Tensor, training: bool = False) -> Memory:
        mask = ops.not_equal(ids, PAD)
        values = self.embedding(ids, training=training)
        return {"values": values * ops.cast(mask[..., None], values.dtype), "mask": mask}
