"""The Transformer encoder."""

from typing import Any

from keras import ops

from regard.models.layers.embeddings import source_embedding
from regard.models.layers.transformer import EncoderBlock, TransformerStack
from regard.models.serialization import register
from regard.models.tensors import Memory, Tensor
from regard.models.vocabulary import EOS


@register
class TransformerEncoder(TransformerStack):
    """A stack of self-attention blocks over the source.

    Vaswani et al. 2017, "Attention Is All You Need", §3.1. Padding is masked, so it does not
    change the result of a row.

    Args:
        vocabulary: the size of the source vocabulary, as in ``source_embedding``.
        dimensions: the number of coordinates of a point.
        read_end: whether EOS is a part of the source. Otherwise it is masked as padding is.
        kwargs: as in ``TransformerStack``.

    Shapes: ids ``[batch, source]``, or points as ``PointEmbedding`` takes
    them → a memory, a dictionary of ``values`` ``[batch, source, embedding]`` (zero at padding)
    and ``mask`` ``[batch, source]``.

    Raises:
        ValueError: a name is unknown, ``heads`` does not divide ``embedding``, or ``read_end`` is
            false for a source that is not tokens.
    """

    final_depth = 0  # there are no final states
    head_names = ("source",)

    def __init__(
        self,
        vocabulary: int | None,
        dimensions: int = 2,
        read_end: bool = True,
        **kwargs: Any,
    ):
        super().__init__(vocabulary, **kwargs)
        self.settings |= {"dimensions": dimensions, "read_end": read_end}
        if not read_end and not vocabulary:
            raise ValueError("Only a source of tokens has an end that read_end can leave out.")
        # Dropout follows the positions, so the embedding has none.
        self.embedding = source_embedding(
            vocabulary,
            self.settings["embedding"],
            scale=self.settings["scale"],
            dimensions=dimensions,
            dtype=self.dtype_policy,
            name="embedding",
        )
        self.create_stack(EncoderBlock)

    @property
    def depth(self) -> int:
        """The depth of the memory."""
        return int(self.settings["embedding"])

    def build(self, ids_shape: Any = None) -> None:
        if not self.embedding.built:
            self.embedding.build()
        self.build_stack()

    def call(self, ids: Tensor, training: bool = False) -> Memory:
        return self.encode_with_attention(ids, training)[0]

    def encode_with_attention(self, ids: Tensor, training: bool = False) -> tuple[Memory, Tensor]:
        """Return the memory and the attention of all heads.

        The attention is ``[batch, layers, heads, source, source]``, queries before keys. The
        values of padded queries have no meaning.
        """
        mask = self.embedding.mask(ids)
        if not self.settings["read_end"]:
            mask = ops.logical_and(mask, ops.not_equal(ids, EOS))
        position = ops.arange(ops.shape(mask)[1])[None]
        values, angles = self.embed(ids, position, training)
        weights = []
        for block in self.blocks:
            values, block_weights = block.call_with_weights(values, mask, angles, training)
            weights.append(block_weights)
        values = self.normalize(values, training)
        memory = {"values": values * ops.cast(mask[..., None], values.dtype), "mask": mask}
        return memory, ops.stack(weights, axis=1)
