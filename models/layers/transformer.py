"""The blocks that a Transformer is a stack of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
from keras import ops

from models.attention.multi_head import MultiHeadAttention
from models.layers.dropouts import Dropout
from models.layers.feed_forward import FeedForward
from models.layers.normalization import LayerNormalization
from models.serialization import register

NORMS = ("pre", "post")
EPSILON = 1e-5


class Block(keras.layers.Layer):
    """What the blocks share: self-attention and a feed-forward network, and a way around each.

    Vaswani et al. 2017, "Attention Is All You Need", §3.1: norm(x + part(x)) ("post"); Xiong et
    al. 2020, "On Layer Normalization in the Transformer Architecture", §3.1: x + part(norm(x))
    ("pre"), which trains without a warm-up and wants one more norm after the last block.

    Args:
        width: the depth of what goes in and comes out.
        heads: how many heads the attention has.
        feed_forward: the inner depth of the feed-forward network.
        norm: one of ``NORMS``.
        activation: that of the feed-forward network.
        dropout: the share dropped of what each part gives.
        attention_dropout: the share dropped of the attention weights.
        activation_dropout: the share dropped inside the feed-forward network.

    Raises:
        ValueError: an unknown norm or activation, or ``heads`` does not divide ``width``.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        feed_forward: int,
        norm: str = "pre",
        activation: str = "relu",
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if norm not in NORMS:
            raise ValueError(f"Unknown norm {norm!r}. Choices: {', '.join(NORMS)}.")
        self.settings: dict[str, Any] = {
            "width": width,
            "heads": heads,
            "feed_forward": feed_forward,
            "norm": norm,
            "activation": activation,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
        }
        policy = self.dtype_policy
        self.attention = MultiHeadAttention(
            heads, width, dropout=attention_dropout, dtype=policy, name="attention"
        )
        self.attention_norm = self._norm("attention_norm")
        self.network = FeedForward(
            feed_forward, activation, activation_dropout, dtype=policy, name="feed_forward"
        )
        self.network_norm = self._norm("feed_forward_norm")
        self.dropout = Dropout(dropout, dtype=policy)

    def _norm(self, name: str) -> Any:
        return LayerNormalization(epsilon=EPSILON, dtype=self.dtype_policy, name=name)

    def build(self, inputs_shape: Any = None) -> None:
        shape = (None, None, self.settings["width"])
        for part in (self.attention, self.attention_norm, self.network, self.network_norm):
            part.build(shape)
        self.built = True

    def compute_mask(self, inputs: Any, previous_mask: Any) -> None:
        """None: masks are arguments here, and Keras hangs none on the outputs."""

    def _feed(self, inputs: Any, training: bool) -> Any:
        def network(x: Any) -> tuple[Any, None]:
            return self.network(x, training=training), None

        return self._around(network, self.network_norm, inputs, training)[0]

    def _around(
        self, part: Callable[[Any], tuple[Any, Any]], norm: Any, inputs: Any, training: bool
    ) -> tuple[Any, Any]:
        """The inputs plus what a part makes of them, and whatever else the part gives."""
        pre = self.settings["norm"] == "pre"
        outputs, other = part(norm(inputs, training=training) if pre else inputs)
        outputs = inputs + self.dropout(outputs, training=training)
        return outputs if pre else norm(outputs, training=training), other

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


@register
class EncoderBlock(Block):
    """Self-attention, then a feed-forward network; arguments as in ``Block``.

    Vaswani et al. 2017, §3.1.

    Shapes: inputs ``[batch, length, width]``, mask ``[batch, length]`` or None → ``[batch,
    length, width]``.
    """

    def call(
        self, inputs: Any, mask: Any = None, angles: Any = None, training: bool = False
    ) -> Any:
        return self.look(inputs, mask, angles, training)[0]

    def look(
        self, inputs: Any, mask: Any = None, angles: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        """As ``call``, with the weights of its heads, ``[batch, heads, length, length]``."""

        def attention(x: Any) -> tuple[Any, Any]:
            return self.attention(x, mask=mask, angles=angles, per_head=True, training=training)

        outputs, weights = self._around(attention, self.attention_norm, inputs, training)
        return self._feed(outputs, training), weights


class Looks(NamedTuple):
    """Where the heads of a ``DecoderBlock`` looked.

    Attributes:
        memory: their weights on the memory, ``[batch, heads, target or hypotheses, source]``.
        distribution: what those were drawn from; the same, unless the alignment is stochastic.
        own: the weights of self-attention, ``[batch, heads, target, target]``; None with a cache.
    """

    memory: Any
    distribution: Any
    own: Any


@register
class DecoderBlock(Block):
    """Causal self-attention, attention to a memory, then a feed-forward network.

    Vaswani et al. 2017, §3.1.

    Args:
        memory_depth: the depth of the memory's values.
        cross: the score and alignment of the attention to the memory, as in
            ``MultiHeadAttention``.

    The others are those of ``Block``.

    Shapes: inputs ``[batch, target, width]``, memory values ``[batch, source, memory_depth]``;
    with a cache inputs ``[rows, 1, width]``, where rows are ``batch * hypotheses``.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        feed_forward: int,
        memory_depth: int,
        cross: dict[str, Any] | None = None,
        **kwargs: Any,
    ):
        super().__init__(width, heads, feed_forward, **kwargs)
        self.settings = {**self.settings, "memory_depth": memory_depth, "cross": dict(cross or {})}
        self.cross = MultiHeadAttention(
            heads,
            width,
            dropout=self.settings["attention_dropout"],
            **self.settings["cross"],
            dtype=self.dtype_policy,
            name="cross",
        )
        self.cross_norm = self._norm("cross_norm")

    def build(self, inputs_shape: Any = None) -> None:
        shape = (None, None, self.settings["width"])
        self.cross.build(shape, (None, None, self.settings["memory_depth"]))
        self.cross_norm.build(shape)
        super().build(inputs_shape)

    def prepare(self, values: Any, mask: Any) -> dict[str, Any]:
        """What ``call`` needs of a memory, computed once."""
        return self.cross.prepare(values, mask)

    def call(
        self,
        inputs: Any,
        memory: dict[str, Any],
        angles: Any = None,
        cache: dict[str, Any] | None = None,
        position: Any = None,
        training: bool = False,
    ) -> tuple[Any, Looks, Any]:
        """All positions at once, or with a ``cache`` one more position.

        Args:
            inputs: ``[batch, target, width]``; with a cache ``[batch * hypotheses, 1, width]``.
            memory: what ``prepare`` gave.
            angles: those of the positions, from ``Positions.angles``.
            cache: the state of self-attention, from ``MultiHeadAttention.cache``.
            position: with a cache, which position each row is at, ``[batch * hypotheses]``.
            training: whether to drop, and whether alignments that sample do so.

        Returns:
            Outputs of the inputs' shape; where the heads looked; and the new cache or None.
        """

        def attention(x: Any) -> tuple[Any, Any]:
            if cache is None:
                return self.attention(
                    x, causal=True, angles=angles, per_head=True, training=training
                )
            return self.attention.step(x, cache, position, angles)

        outputs, found = self._around(attention, self.attention_norm, inputs, training)
        own, cache_after = (found, None) if cache is None else (None, found)
        batch = ops.shape(memory["mask"])[0]
        at = None if cache is None else ops.reshape(position, (batch, -1))

        def cross(x: Any) -> tuple[Any, Any]:
            # The hypotheses of a row stand side by side as queries to the row's one memory.
            query = ops.reshape(x, (batch, -1, self.settings["width"]))
            seen, weights, distribution = self.cross.look(query, memory, at, training)
            return ops.reshape(seen, ops.shape(x)), Looks(weights, distribution, own)

        outputs, looks = self._around(cross, self.cross_norm, outputs, training)
        return self._feed(outputs, training), looks, cache_after
