"""Multi-head attention: several attentions, each on a part of the depth."""

from typing import Any

import keras
from keras import ops

from regard.models.attention import base
from regard.models.attention.alignments import ALIGNMENTS
from regard.models.attention.alignments.soft import SoftAlignment
from regard.models.attention.head_weights import align_heads, softmax_once, softmax_weights
from regard.models.attention.relative import RELATIVE_POSITIONS, RelativePositions, distances
from regard.models.attention.scores import SCORES
from regard.models.attention.scores.products import ScaledDotScore
from regard.models.layers.dropout import Dropout
from regard.models.layers.loops import append_step, transpose_as_int
from regard.models.layers.positions import rotate
from regard.models.serialization import constructor_arguments, register, spec
from regard.models.tensors import State, Tensor


@register
class MultiHeadAttention(base.AttentionLayer):
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
        values: the values of a call without any, as in ``Attention``; not for self-attention.
        relative: the relative positions of self-attention with scaled dot products, a name in
            ``RELATIVE_POSITIONS`` or ``{"type": name, **options}``; or None.

    Shapes: query ``[batch, target, depth]``, memory ``[batch, source, memory_depth]``, values
    ``[batch, source, value_depth]`` or None, mask ``[batch, source]`` or ``[batch, target,
    source]`` (true at valid positions) or None. Returns ``[batch, target, width]`` and the
    weights: ``[batch, heads, target, source]`` with ``per_head``, else their mean over the heads,
    ``[batch, target, source]``. For a row that is masked completely the weights are zero, and the
    output is the bias of the output projection.

    Raises:
        ValueError: ``heads`` does not divide ``width``, or a tensor has the wrong rank; or, in
            ``build``, relative positions with a memory, or with another score or alignment.

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
        values: str = "shared",
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
        self.has_split_values = base.is_split(values)
        self.dropout = Dropout(dropout, dtype=policy)
        # The pair has a faster way to the same weights (`regard.models.attention.head_weights`).
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
        values_shape: tuple[int | None, ...] | None = None,
    ) -> None:
        """Create the weights; without ``memory_shape`` for self-attention."""
        depth, width = query_shape[-1], self.width
        keys = None if memory_shape is None else memory_shape[-1]
        values = None if values_shape is None else values_shape[-1]
        if self.has_split_values and values is None:
            keys, values = base.split_depths(int(keys or 0))
        if keys is None:
            self.project = self._dense("project", depth, 3 * width, 1.0)
        else:
            self.project_query = self._dense("project_query", depth, width, 0.5)
            if values is None:
                self.project_memory = self._dense("project_memory", keys, 2 * width, 0.75)
            else:
                self.project_keys = self._dense("project_keys", keys, width, 0.5)
                self.project_values = self._dense("project_values", values, width, 0.5)
        self.output_projection = self._dense("output", width, width, 1.0)
        if self.relative is not None:
            if memory_shape is not None or not self.is_scaled_dot_soft:
                raise ValueError("Relative positions need self-attention by scaled_dot and soft.")
            self.relative.build()
        per_head = (None, None, self.depth)
        self.score.build(per_head, per_head)
        self.alignment.build(per_head)
        self.has_single_query = query_shape[1] == 1

    def _dense(self, name: str, depth: int | None, units: int, scale: float) -> Any:
        """Return a projection; these scales give fused and separate projections one variance."""
        initializer = keras.initializers.VarianceScaling(scale, "fan_avg", "uniform")
        return self.create_dense(name, depth, units, kernel_initializer=initializer)

    def call(
        self,
        query: Tensor,
        memory: Tensor = None,
        values: Tensor = None,
        mask: Tensor = None,
        position: Tensor = None,
        causal: bool = False,
        angles: Any = None,
        per_head: bool = False,
        return_context: bool = True,
        return_weights: bool = True,
        return_scores: bool = False,
        return_distribution: bool = False,
        query_mask: Tensor = None,
        memory_mask: Tensor = None,
        values_mask: Tensor = None,
        training: bool = False,
    ) -> Any:
        """Attend to ``memory``, or to ``query`` itself without a memory.

        Args:
            query: ``[batch, target, depth]``.
            memory: ``[batch, source, memory_depth]``.
            values: ``[batch, source, value_depth]``, in all calls or in none.
            mask: ``[batch, source]`` or ``[batch, target, source]``, in addition to Keras's masks.
            position: as in ``Attention.call``.
            causal: whether a position attends only to itself and to earlier positions.
            angles: rotations of queries and keys in self-attention, from ``Positions.angles``.
            per_head: return weights, scores and distribution of every head, instead of their mean.

        The other arguments and the outputs are those of ``Attention.call``.
        """
        if memory is None and values is not None:
            raise ValueError("Values need a memory that contains their keys.")
        if memory is None and query_mask is None:
            # Keras passes the mask of a sole argument as `mask`, and in a functional model, which
            # records that argument, also as `query_mask`.
            query_mask = getattr(query, "_keras_mask", None)
        attended = query if memory is None else memory
        base.check_shapes(
            query=query,
            memory=attended,
            values=values,
            mask=mask,
            query_mask=query_mask,
            memory_mask=memory_mask,
            values_mask=values_mask,
        )
        self._query_mask = query_mask
        if memory is None:
            memory_mask = query_mask
            is_padding = query_mask is None and mask is not None and len(mask.shape) == 2
            self._query_mask = mask if is_padding else query_mask
        mask = base.combine_masks(
            mask, memory_mask, values_mask, memory=attended, query_mask=query_mask
        )
        pairs = None
        if mask is not None and len(mask.shape) == 3:
            mask, pairs = None, mask
        if causal:
            is_past = base.causal_mask(query, attended)
            pairs = is_past if pairs is None else ops.logical_and(pairs, is_past)
        if memory is None:
            heads, keys, value_heads = self._project_self(query, angles)
            prepared = self._prepare(keys, value_heads, mask)
        else:
            prepared = self._prepare(*self._project_memory(memory, values), mask)
            (heads,) = self._split_heads(self.project_query(query), 1)
            if position is not None or self.has_single_query:
                target = ops.shape(query)[1]
                position = self.alignment.resolve_position(position, target, training)
        outputs, *alignments = self._attend(heads, prepared, position, pairs, training)
        scores = self._scores(heads, prepared["keys"]) if return_scores else None
        weights, distribution, scores = (
            x if per_head or x is None else ops.mean(x, axis=1) for x in (*alignments, scores)
        )
        return base.select_outputs(
            (outputs, return_context),
            (weights, return_weights),
            (scores, return_scores),
            (distribution, return_distribution),
        )

    def prepare(self, memory: Tensor, mask: Tensor = None, values: Tensor = None) -> State:
        """Compute everything that attending to a memory needs, with a mask ``[batch, source]``."""
        base.check_shapes(memory=memory, values=values, memory_mask=mask)
        self.check_built()
        if mask is None:
            mask = ops.ones(ops.shape(memory)[:2], dtype="bool")
        return self._prepare(*self._project_memory(memory, values), mask)

    def attend_with_distribution(
        self,
        query: Tensor,
        prepared: State,
        position: Tensor = None,
        training: bool | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return outputs, the weights of every head, and their distribution.

        Weights and distribution are ``[batch, heads, target, source]`` and equal unless
        ``stochastic``.

        Args:
            query: ``[batch, target, depth]``.
            prepared: the result of ``prepare``.
            position: as in ``Attention.attend_with_distribution``.
            training: as in ``Attention.attend_with_distribution``.
        """
        base.check_shapes(query=query)
        training = base.resolve_training(training)
        key = prepared.get("random_key")
        target = ops.shape(query)[1]
        position = self.alignment.resolve_position(position, target, training, key)
        (heads,) = self._split_heads(self.project_query(query), 1)
        return self._attend(heads, prepared, position, None, training)

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
        heads = transpose_as_int(heads, (0, 2, 1, 3))
        keys, values, mask = (prepared[name] for name in ("keys", "values", "mask"))
        if not self.is_scaled_dot_soft:
            step, pair = ops.reshape(position, (1, 1)), (self.score, self.alignment)
            weights, _ = align_heads(*pair, heads, keys, mask, position=step)
            return self._merge_heads(ops.matmul(weights, values)), weights
        weights = softmax_once(heads, keys, prepared["bias"])
        outputs = self._merge_heads(ops.matmul(weights, values))
        return outputs, weights * ops.cast(mask[:, None, None], weights.dtype)

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
        projected = transpose_as_int(projected, (2, 0, 3, 1, 4))
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
        weights = softmax_once(heads, cache["keys"], bias)
        return self._merge_heads(self._contexts(weights, cache["values"], distance)), cache

    def _scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """Return the scores of every head, with those of relative positions if there are any."""
        scores = self.score.match(query, keys)
        if self.relative is None:
            return scores
        return ops.cast(scores, "float32") + self.relative.scores(query, distances(scores))

    def _contexts(self, weights: Tensor, values: Tensor, distance: Tensor) -> Tensor:
        """Return the sums of the values, and of their relative positions if there are any."""
        contexts = ops.matmul(weights, values)
        if self.relative is None:
            return contexts
        return contexts + self.relative.contexts(weights, distance)

    def _merge_heads(self, contexts: Tensor) -> Any:
        """Return the projected contexts of all heads, ``[rows * targets, width]``."""
        contexts = transpose_as_int(contexts, (0, 2, 1, 3))
        return self.output_projection(ops.reshape(contexts, (-1, self.width)))

    def _project_memory(self, memory: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values of all heads."""
        is_shared = values is None and not self.has_split_values
        if is_shared != hasattr(self, "project_memory"):
            raise ValueError("A memory, and its values, must be given in all calls or in none.")
        keys, values = self.keys_and_values(memory, values)
        if is_shared:
            keys, values = self._split_heads(self.project_memory(memory), 2)
            return keys, values
        (keys,) = self._split_heads(self.project_keys(keys), 1)
        (values,) = self._split_heads(self.project_values(values), 1)
        return keys, values

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
        if self.is_scaled_dot_soft:  # hides padding in `softmax_once`
            prepared["bias"] = None if mask is None else base.mask_bias(mask)[:, None, None]
        return prepared

    def _attend(
        self, query: Tensor, prepared: State, position: Tensor, pairs: Tensor, training: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return outputs, weights and distribution.

        Args:
            query: ``[batch, heads, target, depth]``.
            prepared: the result of ``_prepare``.
            position: as in ``attend_with_distribution``.
            pairs: true where a target may attend to a source, ``[batch, 1 or target, source]``, or
                ``[target, source]`` for a causal mask; or None.
            training: as in ``call``.
        """
        keys, mask = prepared["keys"], prepared["mask"]
        if not self.is_scaled_dot_soft:
            random_key, pair = prepared.get("random_key"), (self.score, self.alignment)
            weights, distribution = align_heads(
                *pair, query, keys, mask, pairs, position, training, random_key
            )
        else:
            weights = distribution = softmax_weights(query, keys, mask, pairs, self.relative)
        dropped = self.dropout(weights, training=training)
        if self.relative is not None and mask is not None:
            # The values of padding are 0, but its relative vectors are not.
            dropped = dropped * ops.cast(mask[:, None, None, :], dropped.dtype)
        contexts = self._contexts(dropped, prepared["values"], distances(weights))
        joined = ops.transpose(contexts, (0, 2, 1, 3))
        joined = ops.reshape(joined, (-1, ops.shape(joined)[1], self.width))
        if self.is_scaled_dot_soft and mask is not None:
            # The softmax of a completely masked row is not 0.
            weights = distribution = weights * ops.cast(mask[:, None, None, :], weights.dtype)
        return self.output_projection(joined), weights, distribution
