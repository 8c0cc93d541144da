"""The Transformer's encoder: every source position looks at every other."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.layers.dropouts import Dropout
from models.layers.embeddings import source_embedding
from models.layers.normalization import LayerNormalization
from models.layers.positions import POSITIONS
from models.layers.transformer import EPSILON, EncoderBlock
from models.serialization import by_name, register


@register
class TransformerEncoder(keras.layers.Layer):
    """A stack of self-attention blocks over the source.

    Vaswani et al. 2017, "Attention Is All You Need", §3.1. Padding is never looked at, so a
    padded row gives what it gives alone.

    Args:
        vocabulary: the number of source pieces; None for an encoder of points.
        embedding: the depth of the embeddings, of every block and of the memory.
        dropout: the share dropped of the embeddings and of what each part of a block gives.
        layers: the number of blocks.
        heads: the number of heads; divides ``embedding``.
        feed_forward: the inner depth of the feed-forward networks.
        norm: "pre" or "post", as in ``Block``.
        positions: a name in ``POSITIONS``.
        max_positions: how many positions are told apart, where they are learned.
        activation: that of the feed-forward networks.
        attention_dropout: the share dropped of the attention weights.
        activation_dropout: the share dropped inside the feed-forward networks.
        scale: multiply the embeddings by the root of their depth (§3.4).

    Shapes: ids ``[batch, source]``, or points ``[batch, source, 3]`` as ``PointEmbedding`` takes
    them → a memory, a dictionary of ``values`` ``[batch, source, embedding]`` (zero at padding)
    and ``mask`` ``[batch, source]``.

    Raises:
        ValueError: a choice that there is not, or ``heads`` does not divide ``embedding``.
    """

    final_depth = 0  # no state of the whole sentence, as a recurrent encoder has

    with_heads = ("source",)

    def __init__(
        self,
        vocabulary: int | None,
        embedding: int = 256,
        dropout: float = 0.0,
        layers: int = 6,
        heads: int = 8,
        feed_forward: int = 1024,
        norm: str = "pre",
        positions: str = "sinusoidal",
        max_positions: int = 1024,
        activation: str = "relu",
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        scale: bool = True,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {
            "vocabulary": vocabulary,
            "embedding": embedding,
            "dropout": dropout,
            "layers": layers,
            "heads": heads,
            "feed_forward": feed_forward,
            "norm": norm,
            "positions": positions,
            "max_positions": max_positions,
            "activation": activation,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
            "scale": scale,
        }
        if layers < 1:
            raise ValueError(f"A Transformer has at least one layer, not {layers}.")
        policy = self.dtype_policy
        # Dropout comes after the positions, so the embedding itself drops nothing.
        self.embedding = source_embedding(
            vocabulary, embedding, scale=scale, dtype=policy, name="embedding"
        )
        self.positions = by_name("positions", POSITIONS, positions)(
            max_positions, dtype=policy, name="positions"
        )
        self.dropout = Dropout(dropout, dtype=policy)
        self.blocks = [
            EncoderBlock(
                embedding,
                heads,
                feed_forward,
                norm=norm,
                activation=activation,
                dropout=dropout,
                attention_dropout=attention_dropout,
                activation_dropout=activation_dropout,
                dtype=policy,
                name=f"layer_{i}",
            )
            for i in range(layers)
        ]
        self.positions.check(embedding // heads)
        self.norm = None
        if norm == "pre":
            self.norm = LayerNormalization(epsilon=EPSILON, dtype=policy, name="norm")

    @property
    def depth(self) -> int:
        """The depth of the memory."""
        return int(self.settings["embedding"])

    def build(self, ids_shape: Any = None) -> None:
        if not self.embedding.built:
            self.embedding.build()
        shape = (None, None, self.depth)
        self.positions.build(shape)
        for block in self.blocks:
            block.build(shape)
        if self.norm is not None:
            self.norm.build(shape)
        self.built = True

    def call(self, ids: Any, training: bool = False) -> dict[str, Any]:
        return self.look(ids, training)[0]

    def look(self, ids: Any, training: bool = False) -> tuple[dict[str, Any], Any]:
        """The memory, and the weights of all heads, ``[batch, layers, heads, source, source]``.

        Rows are what looked, columns what was looked at; where a row is padding they mean nothing.
        """
        mask = self.embedding.mask(ids)
        position = ops.arange(ops.shape(ids)[1])[None]
        angles = self.positions.angles(position, self.depth // self.settings["heads"])
        values = self.positions(self.embedding(ids, training=training), position)
        values = self.dropout(values, training=training)
        weights = []
        for block in self.blocks:
            values, found = block.look(values, mask=mask, angles=angles, training=training)
            weights.append(found)
        if self.norm is not None:
            values = self.norm(values, training=training)
        memory = {"values": values * ops.cast(mask[..., None], values.dtype), "mask": mask}
        return memory, ops.stack(weights, axis=1)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
