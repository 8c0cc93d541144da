"""The blocks that a Transformer is a stack of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import keras

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
        own: the weights of self-attention, ``[batch, heads, target, target]``.
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

    Shapes: inputs ``[batch, target, width]``, memory values ``[batch, source, memory_depth]``.
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
        """What ``call`` and ``step`` need of a memory, computed once."""
        return self.cross.prepare(values, mask)

    def call(
        self, inputs: Any, memory: dict[str, Any], angles: Any = None, training: bool = False
    ) -> tuple[Any, Looks]:
        """All positions at once.

        Args:
            inputs: ``[batch, target, width]``.
            memory: what ``prepare`` gave.
            angles: those of the positions, from ``Positions.angles``.
            training: whether to drop, and whether alignments that sample do so.

        Returns:
            Outputs of the inputs' shape, and where the heads looked.
        """

        def attention(x: Any) -> tuple[Any, Any]:
            return self.attention(x, causal=True, angles=angles, per_head=True, training=training)

        def cross(x: Any) -> tuple[Any, Any]:
            seen, weights, distribution = self.cross.look(x, memory, None, training)
            return seen, Looks(weights, distribution, own)

        outputs, own = self._around(attention, self.attention_norm, inputs, training)
        outputs, looks = self._around(cross, self.cross_norm, outputs, training)
        return self._feed(outputs, training), looks

    def step(
        self,
        inputs: Any,
        memory: dict[str, Any],
        cache: dict[str, Any],
        unseen: Any,
        position: Any,
        angles: Any = None,
    ) -> tuple[Any, dict[str, Any], Any]:
        """One more position.

        Args:
            inputs: ``[batch * hypotheses, width]``.
            memory: what ``prepare`` gave.
            cache: the state of self-attention, from ``MultiHeadAttention.cache``.
            unseen: what of the cache each hypothesis does not see; see there, under ``step``.
            position: which one it is, a number.
            angles: as in ``call``, for this position.

        Returns:
            Outputs of the inputs' shape, the new cache, and where the heads looked in the memory,
            ``[batch, heads, hypotheses, source]``.
        """

        def attention(x: Any) -> tuple[Any, Any]:
            return self.attention.step(x, cache, unseen, position * unseen.shape[1], angles)

        def cross(x: Any) -> tuple[Any, Any]:
            return self.cross.attend_once(x, memory, position)

        outputs, cache_after = self._around(attention, self.attention_norm, inputs, False)
        outputs, weights = self._around(cross, self.cross_norm, outputs, False)
        return self._feed(outputs, False), cache_after, weights
