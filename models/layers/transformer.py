"""The blocks of Transformers."""

from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from regard.models.attention.multi_head import MultiHeadAttention
from regard.models.attention.relative import RELATIVE_POSITIONS
from regard.models.layers.dropout import Dropout
from regard.models.layers.feed_forward import FeedForward
from regard.models.layers.normalization import LayerNormalization
from regard.models.layers.positions import create_positions
from regard.models.serialization import ConfiguredLayer, check_name, constructor_arguments, register
from regard.models.tensors import State, Tensor

NORMS = ("pre", "post")
# The options of a stack that its blocks have, too, except their sizes.
_BLOCK_OPTIONS = (
    "norm",
    "norm_epsilon",
    "activation",
    "dropout",
    "attention_dropout",
    "activation_dropout",
)


class TransformerBlock(ConfiguredLayer):
    """Base class of the blocks: self-attention and a feed-forward network, each with a residual.

    Vaswani et al. 2017, "Attention Is All You Need", §3.1: norm(x + sublayer(x)) ("post"); Xiong
    et al. 2020, "On Layer Normalization in the Transformer Architecture", figure 1: x +
    sublayer(norm(x)) ("pre"), which needs no warm-up but one more norm after the last block.

    Args:
        width: the depth of inputs and outputs.
        heads: the number of heads.
        feed_forward: the inner depth of the feed-forward network.
        norm: one of ``NORMS``.
        norm_epsilon: the number added to the variance in layer normalization.
        activation: the activation of the feed-forward network.
        dropout: the dropout rate of the output of each sublayer.
        attention_dropout: the dropout rate of the attention weights.
        activation_dropout: the dropout rate inside the feed-forward network.
        relative: the relative positions of the self-attention, as in ``MultiHeadAttention``.

    Raises:
        ValueError: the norm or activation is unknown, or ``heads`` does not divide ``width``.
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
        relative: dict[str, Any] | None = None,
        norm_epsilon: float = 1e-5,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
        check_name("norm", NORMS, norm)
        policy = self.dtype_policy
        options = {"dropout": attention_dropout, "relative": relative, "dtype": policy}
        self.attention = MultiHeadAttention(heads, width, **options, name="attention")
        self.attention_norm = self._create_norm("attention_norm")
        self.network = FeedForward(
            feed_forward, activation, activation_dropout, dtype=policy, name="feed_forward"
        )
        self.network_norm = self._create_norm("feed_forward_norm")
        self.dropout = Dropout(dropout, dtype=policy)

    def _create_norm(self, name: str) -> Any:
        epsilon = self.settings["norm_epsilon"]
        return LayerNormalization(epsilon=epsilon, dtype=self.dtype_policy, name=name)

    def build(self, inputs_shape: Any = None) -> None:
        shape = (None, None, self.settings["width"])
        for layer in (self.attention, self.attention_norm, self.network, self.network_norm):
            layer.build(shape)

    def compute_mask(self, inputs: Any, previous_mask: Any) -> None:
        """Return None: masks are arguments, so outputs carry no Keras mask."""

    def _feed_forward(self, inputs: Any, training: bool) -> Any:
        def network(x: Tensor) -> tuple[Tensor, None]:
            return self.network(x, training=training), None

        return self._residual(network, self.network_norm, inputs, training)[0]

    def _residual(
        self,
        sublayer: Callable[[Tensor], tuple[Tensor, Any]],
        norm: Any,
        inputs: Tensor,
        training: bool,
    ) -> tuple[Tensor, Any]:
        """Return the output of a sublayer with residual and norm, and its second result."""
        is_pre_norm = self.settings["norm"] == "pre"
        outputs, extra = sublayer(norm(inputs, training=training) if is_pre_norm else inputs)
        outputs = inputs + self.dropout(outputs, training=training)
        return outputs if is_pre_norm else norm(outputs, training=training), extra


class TransformerStack(ConfiguredLayer):
    """Base class of the Transformer encoder and decoder: embedding, positions, blocks, last norm.

    A subclass sets ``embedding``, then calls ``create_stack``.

    Args:
        vocabulary: the size of the vocabulary.
        embedding: the depth of the embeddings, of every block and of the outputs.
        dropout: the dropout rate of the embeddings and of the output of each sublayer.
        layers: the number of blocks.
        heads: the number of heads; divides ``embedding``.
        feed_forward: the inner depth of the feed-forward networks.
        norm: ``pre`` or ``post``, as in ``TransformerBlock``.
        norm_epsilon: as in ``TransformerBlock``.
        positions: a name in ``POSITIONS``.
        max_positions: the number of learned positions.
        position_merge: ``add`` or ``concat``, as in ``Positions``.
        first_position: the number of the first position, as in ``Positions``.
        max_distance: the distance from which relative positions are equal.
        activation: the activation of the feed-forward networks.
        attention_dropout: the dropout rate of the attention weights.
        activation_dropout: the dropout rate inside the feed-forward networks.
        scale: multiply the embeddings by the square root of their depth (Vaswani et al. 2017,
            §3.4).
    """

    embedding: Any

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
        position_merge: str = "add",
        first_position: int = 0,
        max_distance: int = 16,
        activation: str = "relu",
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        scale: bool = True,
        norm_epsilon: float = 1e-5,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())

    def create_stack(self, block: type[TransformerBlock], **options: Any) -> None:
        """Create all layers after the embedding.

        Args:
            block: the class of the blocks.
            options: the arguments that only this class of blocks takes.

        Raises:
            ValueError: a name is unknown, or ``heads`` does not divide ``embedding``.
        """
        settings, policy = self.settings, self.dtype_policy
        self.positions = create_positions(settings, dtype=policy, name="positions")
        if settings["positions"] in RELATIVE_POSITIONS:
            distance = settings["max_distance"]
            options["relative"] = {"type": settings["positions"], "max_distance": distance}
        # The memory of another encoder has dropout already.
        rate = settings["dropout"] if settings["vocabulary"] != 0 else 0.0
        self.dropout = Dropout(rate, dtype=policy)
        options |= {name: settings[name] for name in _BLOCK_OPTIONS}
        sizes = settings["embedding"], settings["heads"], settings["feed_forward"]
        self.blocks = [
            block(*sizes, **options, dtype=policy, name=f"layer_{i}")
            for i in range(settings["layers"])
        ]
        self.norm = None
        if settings["norm"] == "pre":
            self.norm = LayerNormalization(
                epsilon=settings["norm_epsilon"], dtype=policy, name="norm"
            )

    @property
    def head_depth(self) -> int:
        """The depth of one head of the self-attention."""
        return int(self.settings["embedding"] // self.settings["heads"])

    def build_stack(self) -> None:
        """Build the layers of ``create_stack``."""
        shape = (None, None, self.settings["embedding"])
        self.positions.build(shape)
        for block in self.blocks:
            block.build()
        if self.norm is not None:
            self.norm.build(shape)

    def embed(self, ids: Tensor, position: Tensor, training: bool) -> tuple[Tensor, Any]:
        """Return embeddings with positions and dropout, and the angles of ``Positions``."""
        vectors = self.positions(self.embedding(ids, training=training), position)
        angles = self.positions.angles(position, self.head_depth)
        return self.dropout(vectors, training=training), angles

    def normalize(self, hidden: Tensor, training: bool = False) -> Tensor:
        """Apply the last norm, if there is one."""
        return hidden if self.norm is None else self.norm(hidden, training=training)


@register
class EncoderBlock(TransformerBlock):
    """Self-attention, then a feed-forward network; arguments as in ``TransformerBlock``.

    Vaswani et al. 2017, §3.1.

    Shapes: inputs ``[batch, length, width]``, mask ``[batch, length]`` or None → ``[batch,
    length, width]``.
    """

    def call(
        self, inputs: Tensor, mask: Tensor = None, angles: Any = None, training: bool = False
    ) -> Tensor:
        return self.call_with_weights(inputs, mask, angles, training)[0]

    def call_with_weights(
        self, inputs: Tensor, mask: Tensor = None, angles: Any = None, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Return ``call`` and the weights of the heads, ``[batch, heads, length, length]``."""

        def attention(x: Tensor) -> tuple[Tensor, Any]:
            return self.attention(x, mask=mask, angles=angles, per_head=True, training=training)

        outputs, weights = self._residual(attention, self.attention_norm, inputs, training)
        return self._feed_forward(outputs, training), weights


class BlockAttention(NamedTuple):
    """The attention weights of all heads of a ``DecoderBlock``.

    Attributes:
        cross: the attention to the memory, ``[batch, heads, target, source]``.
        target: the self-attention, ``[batch, heads, target, target]``.
    """

    cross: Tensor
    target: Tensor


@register
class DecoderBlock(TransformerBlock):
    """Causal self-attention, attention to a memory, then a feed-forward network.

    Vaswani et al. 2017, §3.1.

    Args:
        memory_depth: the depth of the memory's values.
        cross: the score and alignment of the attention to the memory, as in
            ``MultiHeadAttention``.

    The other arguments are those of ``TransformerBlock``.

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
        self.cross_norm = self._create_norm("cross_norm")

    def build(self, inputs_shape: Any = None) -> None:
        shape = (None, None, self.settings["width"])
        self.cross.build(shape, (None, None, self.settings["memory_depth"]))
        self.cross_norm.build(shape)
        super().build(inputs_shape)

    def prepare(self, values: Tensor, mask: Tensor) -> State:
        """Project a memory once for all calls of ``call`` and ``step``."""
        return self.cross.prepare(values, mask)

    def call(
        self, inputs: Tensor, prepared: State, angles: Any = None, training: bool = False
    ) -> tuple[Tensor, BlockAttention]:
        """Compute all positions at once.

        Args:
            inputs: ``[batch, target, width]``.
            prepared: the result of ``prepare``.
            angles: the result of ``Positions.angles``.
            training: whether dropout and sampled alignments are on.

        Returns:
            Outputs of the inputs' shape, and the attention weights.
        """

        def attention(x: Tensor) -> tuple[Tensor, Any]:
            return self.attention(x, causal=True, angles=angles, per_head=True, training=training)

        def cross(x: Tensor) -> tuple[Tensor, Any]:
            position = ops.arange(ops.shape(x)[1])[None]
            outputs = self.cross.attend_with_distribution(x, prepared, position, training)
            context, weights, _ = outputs
            return context, BlockAttention(weights, target)

        outputs, target = self._residual(attention, self.attention_norm, inputs, training)
        outputs, attention_weights = self._residual(cross, self.cross_norm, outputs, training)
        return self._feed_forward(outputs, training), attention_weights

    def step(
        self,
        inputs: Tensor,
        prepared: State,
        cache: State,
        bias: Tensor,
        position: Tensor,
        angles: Any = None,
    ) -> tuple[Tensor, State, Tensor]:
        """Compute one more position.

        Args:
            inputs: ``[batch * hypotheses, width]``.
            prepared: the result of ``prepare``.
            cache: the cache of the self-attention, from ``MultiHeadAttention.cache``.
            bias: hides entries of the cache; see ``MultiHeadAttention.step``.
            position: the index of the position, a scalar.
            angles: as in ``call``, for this position.

        Returns:
            Outputs of the inputs' shape, the new cache, and the attention to the memory,
            ``[batch, heads, hypotheses, source]``.
        """

        def attention(x: Tensor) -> tuple[Tensor, Any]:
            return self.attention.step(x, cache, bias, position * bias.shape[1], angles)

        def cross(x: Tensor) -> tuple[Tensor, Any]:
            return self.cross.attend_once(x, prepared, position)

        outputs, new_cache = self._residual(attention, self.attention_norm, inputs, False)
        outputs, weights = self._residual(cross, self.cross_norm, outputs, False)
        return self._feed_forward(outputs, False), new_cache, weights
