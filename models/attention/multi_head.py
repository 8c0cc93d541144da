"""Multi-head attention: several attentions, each on a part of the depth."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from regard.models.attention.alignments import ALIGNMENTS
from regard.models.attention.alignments.soft import SoftAlignment
from regard.models.attention.relative import RELATIVE_POSITIONS, RelativePositions, distances
from regard.models.attention.scores import SCORES
from regard.models.attention.scores.products import ScaledDotScore
from regard.models.layers.dropout import Dropout
from regard.models.layers.loops import append_step
from regard.models.layers.positions import rotate
from regard.models.serialization import ConfiguredLayer, constructor_arguments, register, spec
from regard.models.tensors import State, Tensor

# Added to a score that must not count.
MASK_BIAS = -1e9


@register
class MultiHeadAttention(ConfiguredLayer):
    """Attend to a memory, or to the query itself, with several heads.

    Vaswani et al. 2017, "Attention Is All You Need", §3.2.2. Each head has its own projections
    of queries, keys and values. Weights of the score and of the alignment, if there are any,
    have the depth of one head and are shared by all heads.

    There are three ways to use it: ``call`` on whole sequences; ``prepare`` a memory once and then
    ``attend_with_distribution`` or ``attend_once``; ``cache`` once and then ``step`` for causal
    self-attention with scaled dot products, position by position.

    Args:
        heads: the number of heads.
        width: the depth of all heads together and of the output.
        score: a name in ``SCORES``, or ``{"type": name, **options}``.
        alignment: a name in ``ALIGNMENTS``, or ``{"type": name, **options}``.
        dropout: the dropout rate of the weights.
        relative: the relative positions of self-attention with scaled dot products, a name in
            ``RELATIVE_POSITIONS`` or ``{"type": name, **options}``; or None.

    Shapes: query ``[batch, target, depth]``, memory ``[batch, source, memory_depth]``, mask
    ``[batch, source]`` (true at valid positions) or None. Returns ``[batch, target, width]`` and
    the weights: ``[batch, heads, target, source]`` with ``per_head``, else their mean over the
    heads, ``[batch, target, source]``. For a row that is masked completely the weights are zero,
    and the output is the bias of the output projection.

    Raises:
        ValueError: ``heads`` does not divide ``width``; or, in ``build``, relative positions with
            a memory, or with another score or alignment.

    Example:
        >>> attention = MultiHeadAttention(heads=4, width=128)
        >>> outputs, weights = attention(inputs, causal=True)
    """

    def __init__(
        self,
        heads: int,
        width: int,
        score: str | dict[str, Any] = "scaled_dot",
        alignment: str | dict[str, Any] = "soft",
        dropout: float = 0.0,
        relative: str | dict[str, Any] | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
        if heads < 1 or width % heads:
            raise ValueError(f"The width {width} cannot be divided into {heads} heads.")
        policy = self.dtype_policy
        self.heads, self.width, self.depth = heads, width, width // heads
        self.score = spec("score", SCORES, score, dtype=policy, name="score")
        self.alignment = spec("alignment", ALIGNMENTS, alignment, dtype=policy, name="alignment")
        self.dropout = Dropout(dropout, dtype=policy)
        # The standard pair has a faster implementation.
        self.is_scaled_dot_soft = (
            type(self.score) is ScaledDotScore and type(self.alignment) is SoftAlignment
        )
        self.relative: RelativePositions | None = None
        if relative is not None:
            sizes = {"heads": heads, "depth": self.depth, "dtype": policy, "name": "relative"}
            self.relative = spec("relative positions", RELATIVE_POSITIONS, relative, **sizes)

    @property
    def stochastic(self) -> bool:
        """Whether weights are sampled in training, so that REINFORCE has to train them."""
        return bool(self.alignment.stochastic)

    def build(
        self,
        query_shape: tuple[int | None, ...],
        memory_shape: tuple[int | None, ...] | None = None,
    ) -> None:
        """Create the weights; without ``memory_shape`` for self-attention."""
        depth, width = query_shape[-1], self.width
        if memory_shape is None:
            self.project = self._dense("project", depth, 3 * width, 1.0)
        else:
            self.project_query = self._dense("project_query", depth, width, 0.5)
            self.project_memory = self._dense("project_memory", memory_shape[-1], 2 * width, 0.75)
        self.output_projection = self._dense("output", width, width, 1.0)
        if self.relative is not None:
            if memory_shape is not None or not self.is_scaled_dot_soft:
                raise ValueError("Relative positions need self-attention by scaled_dot and soft.")
            self.relative.build()
        per_head = (None, None, self.depth)
        self.score.build(per_head, per_head)
        self.alignment.build(per_head)
        self.built = True

    def _dense(self, name: str, depth: int | None, units: int, scale: float) -> Any:
        """Return a projection; these scales give fused and separate projections one variance."""
        initializer = keras.initializers.VarianceScaling(scale, "fan_avg", "uniform")
        return self.create_dense(name, depth, units, kernel_initializer=initializer)

    def compute_mask(self, inputs: Tensor, previous_mask: Any) -> None:
        """Return None: masks are arguments, so outputs carry no Keras mask."""

    def call(
        self,
        query: Tensor,
        memory: Tensor = None,
        mask: Tensor = None,
        causal: bool = False,
        angles: Any = None,
        per_head: bool = False,
        training: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Attend to ``memory``, or to ``query`` itself without a memory.

        Args:
            query: ``[batch, target, depth]``.
            memory: ``[batch, source, memory_depth]``.
            mask: ``[batch, source]``.
            causal: whether a position attends only to itself and to earlier positions.
            angles: rotations of queries and keys in self-attention, from ``Positions.angles``.
            per_head: return the weights of every head.
            training: whether dropout and sampled alignments are on.
        """
        if memory is None:
            heads, keys, values = self._project_self(query, angles)
            prepared = self._prepare(keys, values, mask)
        else:
            (heads,) = self._split_heads(self.project_query(query), 1)
            prepared = self.prepare(memory, mask)
        outputs, weights, _ = self._attend(heads, prepared, None, causal, training)
        return outputs, weights if per_head else ops.mean(weights, axis=1)

    def prepare(self, memory: Tensor, mask: Tensor = None) -> State:
        """Compute everything that attending to a memory needs."""
        keys, values = self._split_heads(self.project_memory(memory), 2)
        return self._prepare(keys, values, mask)

    def attend_with_distribution(
        self, query: Tensor, prepared: State, position: Tensor = None, training: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return outputs, the weights of every head, and their distribution.

        Weights and distribution are ``[batch, heads, target, source]`` and equal unless
        ``stochastic``.

        Args:
            query: ``[batch, target, depth]``.
            prepared: the result of ``prepare``.
            position: the decoder step of each query, ``[batch or 1, target]``; the default is
                0, 1, 2, ...
            training: as in ``call``.
        """
        (heads,) = self._split_heads(self.project_query(query), 1)
        return self._attend(heads, prepared, position, False, training)

    def attend_once(
        self, query: Tensor, prepared: State, position: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Attend with one query per hypothesis; the hypotheses of a row share its memory.

        Args:
            query: ``[batch * hypotheses, depth]``.
            prepared: the result of ``prepare`` for ``batch`` rows.
            position: the decoder step, a scalar.

        Returns:
            ``[batch * hypotheses, width]``, and the weights ``[batch, heads, hypotheses, source]``.
        """
        batch = ops.shape(prepared["mask"])[0]
        heads = ops.reshape(self.project_query(query), (batch, -1, self.heads, self.depth))
        heads = _transpose_as_int(heads, (0, 2, 1, 3))
        if self.is_scaled_dot_soft:
            keys, values, bias = (prepared[name] for name in ("keys", "values", "bias"))
            weights = self._softmax_once(heads, keys, bias)
            outputs = self._merge_heads(ops.matmul(weights, values))
            return outputs, weights * ops.cast(prepared["mask"][:, None, None], weights.dtype)
        step = ops.reshape(position, (1, 1))
        weights, _ = self._align(heads, prepared["keys"], prepared["mask"], step, False, False)
        return self._merge_heads(ops.matmul(weights, prepared["values"])), weights

    def cache(self, rows: Tensor, length: Tensor) -> State:
        """Return keys and values ``[rows, heads, length, depth]`` to fill with ``step``."""
        zeros = ops.zeros((rows, self.heads, length, self.depth), dtype=self.compute_dtype)
        return {"keys": zeros, "values": zeros}

    def step(
        self, query: Tensor, cache: State, bias: Tensor, position: Tensor, angles: Any = None
    ) -> tuple[Tensor, State]:
        """Compute self-attention of one more position of several hypotheses per row.

        The entries of all hypotheses of a row share one cache, which therefore does not move when
        a search reorders the hypotheses.

        Args:
            query: ``[rows * hypotheses, depth]``.
            cache: the result of ``cache`` or of the previous step, ``rows`` rows.
            bias: added to the scores, ``[rows, hypotheses, steps * hypotheses]`` including this
                step: 0 for entries that belong to the hypothesis, ``MASK_BIAS`` for those that
                belong to others.
            position: the index of this step in a cache of fixed length.
            angles: as in ``call``, for this position.

        Returns:
            ``[rows * hypotheses, width]`` and the cache with this position.
        """
        hypotheses = bias.shape[1]
        projected = ops.reshape(self.project(query), (-1, hypotheses, 3, self.heads, self.depth))
        projected = _transpose_as_int(projected, (2, 0, 3, 1, 4))
        cache = {
            "keys": append_step(cache["keys"], rotate(projected[1], angles), 2, position),
            "values": append_step(cache["values"], projected[2], 2, position),
        }
        heads, bias, distance = rotate(projected[0], angles), bias[:, None], None
        if self.relative is not None:
            # The hypotheses of a step are next to each other in the cache.
            steps = (ops.arange(ops.shape(cache["keys"])[2]) - position) // hypotheses
            distance = ops.repeat(steps[None], hypotheses, axis=0)
            bias = bias + self.relative.scores(heads, distance)
        weights = self._softmax_once(heads, cache["keys"], bias)
        return self._merge_heads(self._contexts(weights, cache["values"], distance)), cache

    def _contexts(self, weights: Tensor, values: Tensor, distance: Tensor) -> Tensor:
        """Return the sums of the values, and of their relative positions if there are any."""
        contexts = ops.matmul(weights, values)
        if self.relative is None:
            return contexts
        return contexts + self.relative.contexts(weights, distance)

    def _softmax_once(self, query: Tensor, keys: Tensor, bias: Tensor) -> Tensor:
        """Return softmax weights, in the order of operations that TensorFlow fuses."""
        scores = ops.matmul(query, ops.swapaxes(keys, -1, -2)) * self.depth**-0.5
        weights = ops.softmax(ops.cast(scores, "float32") + bias, axis=-1)
        return ops.cast(weights, self.compute_dtype)

    def _merge_heads(self, contexts: Tensor) -> Any:
        """Return the projected contexts of all heads, ``[rows * targets, width]``."""
        contexts = _transpose_as_int(contexts, (0, 2, 1, 3))
        return self.output_projection(ops.reshape(contexts, (-1, self.width)))

    def _project_self(self, inputs: Tensor, angles: Any) -> tuple[Tensor, Tensor, Tensor]:
        query, keys, values = self._split_heads(self.project(inputs), 3)
        return rotate(query, angles), rotate(keys, angles), values

    def _split_heads(self, vectors: Tensor, parts: int) -> list[Tensor]:
        """Split ``[batch, length, parts * width]`` into ``[batch, heads, length, depth]`` each."""
        length = ops.shape(vectors)[1]
        vectors = ops.reshape(vectors, (-1, length, parts, self.heads, self.depth))
        vectors = ops.transpose(vectors, (2, 0, 3, 1, 4))
        # Indexing would create a tensor of zeros per part in the gradient.
        return list(ops.unstack(vectors, parts))

    def _prepare(self, keys: Tensor, values: Tensor, mask: Tensor) -> State:
        if mask is not None:
            # Zero values give a completely masked row a zero context, whatever its weights are.
            values = values * ops.cast(mask[:, None, :, None], values.dtype)
        prepared = {"keys": self.score.prepare(keys), "values": values, "mask": mask}
        if self.is_scaled_dot_soft:
            prepared["bias"] = None if mask is None else _mask_bias(mask)
        return prepared

    def _attend(
        self, query: Tensor, prepared: State, position: Tensor, causal: bool, training: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        keys, mask = prepared["keys"], prepared["mask"]
        if self.is_scaled_dot_soft:
            weights = self._softmax(query, keys, mask, causal)
            distribution = weights
        else:
            random_key = prepared.get("random_key")
            weights, distribution = self._align(
                query, keys, mask, position, causal, training, random_key
            )
        dropped = self.dropout(weights, training=training)
        if self.relative is not None and mask is not None:
            # The values of padding are 0, but its relative vectors are not.
            dropped = dropped * ops.cast(mask[:, None, None, :], dropped.dtype)
        contexts = self._contexts(dropped, prepared["values"], distances(weights))
        joined = ops.transpose(contexts, (0, 2, 1, 3))
        joined = ops.reshape(joined, (-1, ops.shape(joined)[1], self.width))
        if (
            self.is_scaled_dot_soft and mask is not None
        ):  # the softmax of a completely masked row is not 0
            weights = distribution = weights * ops.cast(mask[:, None, None, :], weights.dtype)
        return self.output_projection(joined), weights, distribution

    def _softmax(self, query: Tensor, keys: Tensor, mask: Tensor, causal: bool) -> Any:
        """Return the softmax of the scaled dot products in float32."""
        scores = ops.matmul(query * self.depth**-0.5, ops.swapaxes(keys, -1, -2))
        scores = ops.cast(scores, "float32")
        if self.relative is not None:
            scores = scores + self.relative.scores(query, distances(scores))
        if mask is not None:
            scores = scores + _mask_bias(mask)
        causal_mask = _causal_mask(scores) if causal else None
        if causal:
            scores = scores + ops.where(causal_mask, 0.0, MASK_BIAS)
        weights = ops.softmax(scores, axis=-1)
        if causal and mask is not None:  # a row that both hide completely has equal scores
            weights = weights * ops.cast(causal_mask, "float32")
        return ops.cast(weights, self.compute_dtype)

    def _align(
        self,
        query: Tensor,
        keys: Tensor,
        mask: Tensor,
        position: Tensor,
        causal: bool,
        training: bool,
        random_key: Tensor = None,
    ) -> tuple[Tensor, Tensor]:
        """Apply any score and alignment; every head is a separate row for the alignment."""
        scores = self.score.match(query, keys)
        batch, _, target, source = ops.shape(scores)
        valid = ops.ones((batch, source), dtype="bool") if mask is None else mask
        valid = self.score.valid_mask(valid)[:, None, :]
        if causal:
            valid = ops.logical_and(valid, _causal_mask(scores))
        if position is None:
            position = ops.arange(target)[None]
        position = ops.broadcast_to(position, (batch, target))
        both = self.alignment.align_with_distribution(
            ops.reshape(scores, (-1, target, source)),
            mask=ops.repeat(valid, self.heads, axis=0),
            query=ops.reshape(query, (-1, target, self.depth)),
            position=ops.repeat(position, self.heads, axis=0),
            training=training,
            random_key=random_key,
        )
        weights, distribution = (ops.reshape(x, (-1, self.heads, target, source)) for x in both)
        return weights, distribution


def _transpose_as_int(x: Tensor, axes: tuple[int, ...]) -> Any:
    """Transpose floats as integers of the same size; has no gradient.

    For the small tensors of one step, oneDNN's transposition of floats takes 20 times as long.
    """
    dtype = keras.backend.standardize_dtype(x.dtype)
    integer = "int32" if dtype == "float32" else "int16"
    return ops.view(ops.transpose(ops.view(x, integer), axes), dtype)


def _mask_bias(mask: Tensor) -> Any:
    """Return the bias ``[batch, 1, 1, source]`` of a mask ``[batch, source]``."""
    return ops.where(mask, 0.0, MASK_BIAS)[:, None, None, :]


def _causal_mask(scores: Tensor) -> Any:
    """Return where the source is not after the target, ``[target, source]``."""
    return distances(scores) <= 0
