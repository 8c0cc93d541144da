"""The Transformer's decoder: every target position looks at those before it and at the memory."""

from __future__ import annotations

from typing import Any

from keras import ops

from models.decoders.base import Decoder
from models.layers.dropouts import Dropout
from models.layers.embeddings import TokenEmbedding
from models.layers.normalization import LayerNormalization
from models.layers.positions import POSITIONS
from models.layers.transformer import EPSILON, DecoderBlock, Looks
from models.serialization import by_name, register


@register
class TransformerDecoder(Decoder):
    """A stack of blocks of causal self-attention and attention to a memory.

    Vaswani et al. 2017, "Attention Is All You Need", §3.1. Any encoder's memory will do: its
    keys and values are projected to the decoder's width once a sentence. While decoding, the
    keys and values of the target's positions are kept, so a step is linear in their number. The
    alignment is the heads' mean in the last block.

    Args:
        vocabulary: the number of target pieces.
        memory_depth: the depth of the memory's values.
        final_depth: that of an encoder's final states; not used here.
        embedding: the depth of the embeddings and of every block.
        dropout: the share dropped of the embeddings and of what each part of a block gives.
        attention: ``score`` and ``alignment`` of the attention to the memory, each a name or
            ``{"type": name, **options}``; by default, and for None, scaled_dot and soft, since
            without attention this decoder would see nothing of the source.
        tied: whether the embeddings are the output's matrix too.
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

    Raises:
        ValueError: a choice that there is not, or ``heads`` does not divide ``embedding``.
    """

    with_heads = ("cross", "target")

    def __init__(
        self,
        vocabulary: int,
        memory_depth: int,
        final_depth: int = 0,
        embedding: int = 256,
        dropout: float = 0.0,
        attention: dict[str, Any] | None = None,
        tied: bool = False,
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
            "memory_depth": memory_depth,
            "final_depth": final_depth,
            "embedding": embedding,
            "dropout": dropout,
            "attention": dict(attention or {}),
            "tied": tied,
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
        self.embedding = TokenEmbedding(
            vocabulary, embedding, scale=scale, dtype=policy, name="embedding"
        )
        self.positions = by_name("positions", POSITIONS, positions)(
            max_positions, dtype=policy, name="positions"
        )
        self.dropout = Dropout(dropout, dtype=policy)
        self.blocks = [
            DecoderBlock(
                embedding,
                heads,
                feed_forward,
                memory_depth,
                cross=attention,
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
        self.make_output(vocabulary, embedding, tied)

    @property
    def stochastic(self) -> bool:
        return self.blocks[0].cross.stochastic

    def build(self, tokens_shape: Any = None) -> None:
        width = self.settings["embedding"]
        self.build_output(width)
        self.positions.build((None, None, width))
        for block in self.blocks:
            block.build()
        if self.norm is not None:
            self.norm.build((None, None, width))
        self.built = True

    def start(self, memory: dict[str, Any], longest: Any = None) -> dict[str, Any]:
        """As every decoder's.

        Raises:
            ValueError: ``longest`` is missing, without which there is no size for the caches.
        """
        if longest is None:
            raise ValueError("A Transformer's caches need to know the longest hypothesis.")
        batch = ops.shape(memory["mask"])[0]
        return {
            "memory": self._memory(memory),
            "caches": [block.attention.cache(batch, longest) for block in self.blocks],
            "position": ops.zeros((batch,), dtype="int32"),
        }

    def step(self, tokens: Any, state: dict[str, Any]) -> tuple[Any, dict[str, Any], Any]:
        position, caches = state["position"], []
        hidden, angles = self._embed(tokens[:, None], position[:, None], False)
        weights = None
        for block, memory, cache in zip(
            self.blocks, state["memory"]["blocks"], state["caches"], strict=True
        ):
            hidden, looks, cache = block(hidden, memory, angles, cache, position)
            weights = looks.memory
            caches.append(cache)
        alignment = ops.mean(weights, axis=1)  # [batch, hypotheses, source]
        alignment = ops.reshape(alignment, (-1, ops.shape(alignment)[-1]))
        new = {"memory": state["memory"], "caches": caches, "position": position + 1}
        return self._logits(hidden[:, 0]), new, alignment

    def unroll(
        self, tokens: Any, memory: dict[str, Any], training: bool = False
    ) -> tuple[Any, Any]:
        logits, looks = self._unroll(tokens, memory, training)
        return logits, ops.mean(looks[-1].memory, axis=1)

    def heads(self, tokens: Any, memory: dict[str, Any]) -> dict[str, Any]:
        _, looks = self._unroll(tokens, memory, False)
        return {
            "cross": ops.stack([look.memory for look in looks], axis=1),
            "target": ops.stack([look.own for look in looks], axis=1),
        }

    def unroll_with_distribution(
        self, tokens: Any, memory: dict[str, Any], training: bool = False
    ) -> tuple[Any, Any, Any]:
        """As every decoder's, but if ``stochastic`` with the draws of all heads of all blocks.

        They stand side by side along the source, ``[batch, target, blocks * heads * source]``,
        so that the log-probability of all draws together is a sum over that axis.
        """
        if not self.stochastic:
            return super().unroll_with_distribution(tokens, memory, training=training)
        logits, looks = self._unroll(tokens, memory, training)
        drawn = _side_by_side([look.memory for look in looks])
        return logits, drawn, _side_by_side([look.distribution for look in looks])

    def _unroll(
        self, tokens: Any, memory: dict[str, Any], training: bool
    ) -> tuple[Any, list[Looks]]:
        """The logits, and where every block looked."""
        position = ops.arange(ops.shape(tokens)[1])[None]
        hidden, angles = self._embed(tokens, position, training)
        looks = []
        for block, prepared in zip(self.blocks, self._memory(memory)["blocks"], strict=True):
            hidden, look, _ = block(hidden, prepared, angles, training=training)
            looks.append(look)
        return self._logits(hidden, training), looks

    def _memory(self, memory: dict[str, Any]) -> dict[str, Any]:
        """The memory as every block needs it, computed once a sentence."""
        values, mask = memory["values"], memory["mask"]
        return {"mask": mask, "blocks": [block.prepare(values, mask) for block in self.blocks]}

    def _embed(self, tokens: Any, position: Any, training: bool) -> tuple[Any, Any]:
        vectors = self.positions(self.embedding(tokens, training=training), position)
        depth = self.settings["embedding"] // self.settings["heads"]
        return self.dropout(vectors, training=training), self.positions.angles(position, depth)

    def _logits(self, hidden: Any, training: bool = False) -> Any:
        if self.norm is not None:
            hidden = self.norm(hidden, training=training)
        return self.output_logits(hidden)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


def _side_by_side(weights: list[Any]) -> Any:
    """So many ``[batch, heads, target, source]`` → ``[batch, target, all of them * source]``."""
    joined = ops.transpose(ops.concatenate(weights, axis=1), (0, 2, 1, 3))
    _, target, parts, source = ops.shape(joined)
    return ops.reshape(joined, (-1, target, parts * source))
