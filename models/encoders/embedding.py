"""The simplest encoder: the embeddings of the tokens."""

from typing import Any

from keras import ops

from regard.models.layers.embeddings import source_embedding
from regard.models.layers.positions import create_positions
from regard.models.serialization import ConfiguredLayer, constructor_arguments, register
from regard.models.tensors import Memory, Tensor


@register
class EmbeddingEncoder(ConfiguredLayer):
    """Return the embedding of each token, independent of its context, possibly with positions.

    With mean pooling this is the average of word vectors, a common baseline of sentence encoders
    (Wieting et al. 2016, "Towards Universal Paraphrastic Sentence Embeddings").

    Args:
        vocabulary: the size of the vocabulary, as in ``source_embedding``.
        embedding: the depth of the embeddings and of the memory.
        dropout: the dropout rate of the embeddings.
        positions: a name in ``POSITIONS``.
        max_positions: the number of learned positions.
        position_merge: ``add`` or ``concat``, as in ``Positions``.
        scale: multiply them by the square root of their depth, as in ``RecurrentEncoder``.
        dimensions: the number of coordinates of a point.

    Shapes: ids ``[batch, source]`` → a memory, a dictionary of ``values`` ``[batch, source,
    embedding]`` (zero at padding) and ``mask`` ``[batch, source]``.
    """

    final_depth = 0  # there are no final states

    def __init__(
        self,
        vocabulary: int | None,
        embedding: int = 256,
        dropout: float = 0.0,
        positions: str = "none",
        max_positions: int = 1024,
        position_merge: str = "add",
        scale: bool = True,
        dimensions: int = 2,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
        policy = self.dtype_policy
        self.embedding = source_embedding(
            vocabulary, embedding, dropout, scale, dimensions, dtype=policy, name="embedding"
        )
        self.positions = create_positions(self.settings, dtype=policy, name="positions")

    @property
    def depth(self) -> int:
        """The depth of the memory."""
        return int(self.settings["embedding"])

    def build(self, ids_shape: Any = None) -> None:
        if not self.embedding.built:
            self.embedding.build()
        self.positions.build((None, None, self.settings["embedding"]))

    def call(self, ids: Tensor, training: bool = False) -> Memory:
        mask = self.embedding.mask(ids)
        position = ops.arange(ops.shape(mask)[1])[None]
        values = self.positions(self.embedding(ids, training=training), position)
        return {"values": values * ops.cast(mask[..., None], values.dtype), "mask": mask}
