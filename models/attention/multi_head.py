"""Multi-head attention: several attentions side by side, each on its own part of the depth."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.attention.alignments import ALIGNMENTS, SoftAlignment
from models.attention.scores import SCORES, ScaledDotScore
from models.layers.dropouts import Dropout
from models.layers.positions import rotate
from models.serialization import register, spec


@register
class MultiHeadAttention(keras.layers.Layer):
    """Looks at a memory, or at its own inputs, with several heads.

    Vaswani et al. 2017, "Attention Is All You Need", §3.2.2. Each head has its own projections
    of queries, keys and values; weights of the score and of the alignment, where they have any,
    are built for the depth of one head and shared by all.

    There are three ways to use it: ``call`` on whole sequences; ``prepare`` of a memory once and
    ``attend`` often; ``cache`` once and ``step`` for causal self-attention, position by position.

    Args:
        heads: how many attentions.
        width: the depth of all heads together, and of the output.
        score: a name in ``SCORES``, or ``{"type": name, **options}``.
        alignment: a name in ``ALIGNMENTS``, or ``{"type": name, **options}``.
        dropout: the share of the weights dropped in training.

    Shapes: query ``[batch, target, depth]``, memory ``[batch, source, memory_depth]``, mask
    ``[batch, source]`` (true at real positions) or None. Gives ``[batch, target, width]`` and
    the weights, ``[batch, heads, target, source]`` if ``per_head``, else their mean over the
    heads, ``[batch, target, source]``. Where all of a row is masked both are zero but for the
    bias of the output.

    Raises:
        ValueError: ``heads`` does not divide ``width``.

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
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if heads < 1 or width % heads:
            raise ValueError(f"The width {width} does not divide into {heads} heads.")
        self.settings: dict[str, Any] = {
            "heads": heads,
            "width": width,
            "score": score,
            "alignment": alignment,
            "dropout": dropout,
        }
        policy = self.dtype_policy
        self.heads, self.width, self.depth = heads, width, width // heads
        self.score = spec("score", SCORES, score, dtype=policy, name="score")
        self.alignment = spec("alignment", ALIGNMENTS, alignment, dtype=policy, name="alignment")
        self.dropout = Dropout(dropout, dtype=policy)
        # The usual pair needs neither weights of its own nor a look at each row's length.
        self.plain = type(self.score) is ScaledDotScore and type(self.alignment) is SoftAlignment

    @property
    def stochastic(self) -> bool:
        """Whether the weights are drawn in training, so that their choice has to be rewarded."""
        return bool(self.alignment.stochastic)

    def build(
        self,
        query_shape: tuple[int | None, ...],
        memory_shape: tuple[int | None, ...] | None = None,
    ) -> None:
        """Makes the weights: for self-attention if there is no ``memory_shape``."""
        depth, width = query_shape[-1], self.width
        if memory_shape is None:
            self.project = self._dense("project", depth, 3 * width, 1.0)
        else:
            self.project_query = self._dense("project_query", depth, width, 0.5)
            self.project_memory = self._dense("project_memory", memory_shape[-1], 2 * width, 0.75)
        self.output_projection = self._dense("output", width, width, 1.0)
        per_head = (None, None, self.depth)
        self.score.build(per_head, per_head)
        self.alignment.build(per_head)
        self.built = True

    def _dense(self, name: str, depth: int | None, units: int, scale: float) -> Any:
        """A projection; with these scales all blocks of one width start alike, fused or not."""
        layer = keras.layers.Dense(
            units,
            kernel_initializer=keras.initializers.VarianceScaling(scale, "fan_avg", "uniform"),
            dtype=self.dtype_policy,
            name=name,
        )
        layer.build((None, depth))
        return layer

    def compute_mask(self, inputs: Any, previous_mask: Any) -> None:
        """None: masks are arguments here, and Keras hangs none on the outputs."""

    def call(
        self,
        query: Any,
        memory: Any = None,
        mask: Any = None,
        causal: bool = False,
        angles: Any = None,
        per_head: bool = False,
        training: bool = False,
    ) -> tuple[Any, Any]:
        """Attention to ``memory``, or of ``query`` to itself if there is none.

        Args:
            query: ``[batch, target, depth]``.
            memory: ``[batch, source, memory_depth]``.
            mask: ``[batch, source]``.
            causal: whether a position sees only itself and what is before it.
            angles: rotations of self-attention's queries and keys, from ``Positions.angles``.
            per_head: give the weights of every head.
            training: whether to drop, and whether alignments that sample do so.
        """
        if memory is None:
            heads, keys, values = self._project_self(query, angles)
            prepared = self._prepared(keys, values, mask)
        else:
            (heads,) = self._split(self.project_query(query), 1)
            prepared = self.prepare(memory, mask)
        outputs, weights, _ = self._look(heads, prepared, None, causal, training)
        return outputs, weights if per_head else ops.mean(weights, axis=1)

    def prepare(self, memory: Any, mask: Any = None) -> dict[str, Any]:
        """What ``attend`` needs of a memory, computed once."""
        keys, values = self._split(self.project_memory(memory), 2)
        return self._prepared(keys, values, mask)

    def attend(
        self, query: Any, prepared: dict[str, Any], position: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        """Outputs and the mean weights for a query against a prepared memory.

        Args:
            query: ``[batch, target, depth]``.
            prepared: what ``prepare`` gave.
            position: which step of the decoder each query is, ``[batch or 1, target]``; by
                default the first, second, ... of the queries given.
            training: as in ``call``.
        """
        outputs, weights, _ = self.look(query, prepared, position, training)
        return outputs, ops.mean(weights, axis=1)

    def look(
        self, query: Any, prepared: dict[str, Any], position: Any = None, training: bool = False
    ) -> tuple[Any, Any, Any]:
        """As ``attend``, with the weights of every head and what they were drawn from.

        The two are ``[batch, heads, target, source]``, and the same unless ``stochastic``.
        """
        (heads,) = self._split(self.project_query(query), 1)
        return self._look(heads, prepared, position, False, training)

    def cache(self, rows: Any, longest: Any) -> dict[str, Any]:
        """Room for the keys and values of so many steps: ``[rows, heads, longest, depth]``."""
        zeros = ops.zeros((rows, self.heads, longest, self.depth), dtype=self.compute_dtype)
        return {"keys": zeros, "values": zeros}

    def step(
        self, query: Any, cache: dict[str, Any], position: Any, angles: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Causal self-attention of one more position to those before it and to itself.

        Args:
            query: ``[rows, 1, depth]``.
            cache: what ``cache`` or the step before gave.
            position: which position this is, ``[rows]``.
            angles: as in ``call``, for this position.

        Returns:
            ``[rows, 1, width]`` and the cache with this position in it.
        """
        heads, keys, values = self._project_self(query, angles)
        steps, position = ops.arange(ops.shape(cache["values"])[2]), position[:, None]
        here = ops.equal(steps, position)[:, None, :, None]
        cache = {
            "keys": ops.where(here, keys, cache["keys"]),
            "values": ops.where(here, values, cache["values"]),
        }
        prepared = {**cache, "keys": self.score.prepare(cache["keys"]), "mask": steps <= position}
        outputs, _, _ = self._look(heads, prepared, position, False, False)
        return outputs, cache

    def _project_self(self, inputs: Any, angles: Any) -> tuple[Any, Any, Any]:
        query, keys, values = self._split(self.project(inputs), 3)
        return rotate(query, angles), rotate(keys, angles), values

    def _split(self, vectors: Any, parts: int) -> list[Any]:
        """``[batch, length, parts * width]`` → so many ``[batch, heads, length, depth]``."""
        length = ops.shape(vectors)[1]
        vectors = ops.reshape(vectors, (-1, length, parts, self.heads, self.depth))
        vectors = ops.transpose(vectors, (2, 0, 3, 1, 4))
        # The gradient of indexing would be a tensor of zeros a part.
        return list(ops.unstack(vectors, parts))

    def _prepared(self, keys: Any, values: Any, mask: Any) -> dict[str, Any]:
        if mask is not None:
            # Without values a row that is all masked has no context, whatever its weights.
            values = values * ops.cast(mask[:, None, :, None], values.dtype)
        return {"keys": self.score.prepare(keys), "values": values, "mask": mask}

    def _look(
        self, query: Any, prepared: dict[str, Any], position: Any, causal: bool, training: bool
    ) -> tuple[Any, Any, Any]:
        keys, mask = prepared["keys"], prepared["mask"]
        if self.plain:
            weights = self._softmax(query, keys, mask, causal)
            distribution = weights
        else:
            weights, distribution = self._align(query, keys, mask, position, causal, training)
        contexts = ops.matmul(self.dropout(weights, training=training), prepared["values"])
        joined = ops.transpose(contexts, (0, 2, 1, 3))
        joined = ops.reshape(joined, (-1, ops.shape(joined)[1], self.width))
        if self.plain and mask is not None:  # where all is masked a softmax is not zero
            weights = distribution = weights * ops.cast(mask[:, None, None, :], weights.dtype)
        return self.output_projection(joined), weights, distribution

    def _softmax(self, query: Any, keys: Any, mask: Any, causal: bool) -> Any:
        """Softmax of the scaled products in float32, with one addition a mask."""
        scores = ops.matmul(query * self.depth**-0.5, ops.swapaxes(keys, -1, -2))
        scores = ops.cast(scores, "float32")
        if mask is not None:
            scores = scores + ops.where(mask, 0.0, -1e9)[:, None, None, :]
        before = _before(scores) if causal else None
        if causal:
            scores = scores + ops.where(before, 0.0, -1e9)
        weights = ops.softmax(scores, axis=-1)
        if causal and mask is not None:  # where both hide all, their sums tell nothing apart
            weights = weights * ops.cast(before, "float32")
        return ops.cast(weights, self.compute_dtype)

    def _align(
        self, query: Any, keys: Any, mask: Any, position: Any, causal: bool, training: bool
    ) -> tuple[Any, Any]:
        """Any score and alignment; to the alignment every head is a row of its own."""
        scores = self.score.match(query, keys)
        batch, _, target, source = ops.shape(scores)
        seen = ops.ones((batch, source), dtype="bool") if mask is None else mask
        seen = self.score.reach(seen)[:, None, :]
        if causal:
            seen = ops.logical_and(seen, _before(scores))
        if position is None:
            position = ops.arange(target)[None]
        position = ops.broadcast_to(position, (batch, target))
        both = self.alignment.look(
            ops.reshape(scores, (-1, target, source)),
            mask=ops.repeat(seen, self.heads, axis=0),
            query=ops.reshape(query, (-1, target, self.depth)),
            position=ops.repeat(position, self.heads, axis=0),
            training=training,
        )
        weights, distribution = (ops.reshape(x, (-1, self.heads, target, source)) for x in both)
        return weights, distribution

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


def _before(scores: Any) -> Any:
    """Where the source is not after the target: ``[target, source]``."""
    target, source = ops.shape(scores)[-2:]
    return ops.arange(target)[:, None] >= ops.arange(source)[None]
