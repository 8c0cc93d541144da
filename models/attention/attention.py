"""Attention as a weighted sum of values: a score, an alignment and a sum."""

from typing import Any

from keras import ops

from regard.models.attention import base
from regard.models.attention.alignments import ALIGNMENTS, local
from regard.models.attention.scores import SCORES
from regard.models.layers.dropout import Dropout
from regard.models.serialization import constructor_arguments, register, spec
from regard.models.tensors import State, Tensor


@register
class Attention(base.AttentionLayer):
    """Attend to a memory with a query and return the weighted sum of the memory or of other values.

    Any score can be combined with any alignment. A decoder that attends to one memory at every
    step calls ``prepare`` once and ``attend_with_distribution`` at every step; ``call`` does both.

    Args:
        score: a name in ``SCORES``, or ``{"type": name, **options}``.
        alignment: a name in ``ALIGNMENTS``, or ``{"type": name, **options}``.
        values: the values of a call without any: ``shared``, the memory; or ``split``, the second
            half of each vector of the memory, whose first half is the key (Daniluk et al. 2017,
            "Frustratingly Short Attention Spans in Neural Language Modeling", §2.2; Mino et al.
            2017, "Key-value Attention Mechanism for Neural Machine Translation").
        dropout: the dropout rate of the weights in the sum. Not for a decoder, whose loop must not
            change the state of a random generator.

    Shapes: query ``[batch, target, query_depth]``, memory ``[batch, source, depth]``, values
    ``[batch, source, value_depth]`` or None, mask ``[batch, source]`` or ``[batch, target,
    source]`` (true at valid positions) or None. Returns the context ``[batch, target,
    value_depth]`` and the weights ``[batch, target, source]``; both are zero for a row that is
    masked completely.

    Raises:
        ValueError: a score, alignment or option is unknown; in ``build``, the score does not
            support the depths; or, in ``call``, a tensor has the wrong rank.

    Example:
        >>> attention = Attention(score="general", alignment={"type": "local_p", "window": 5})
        >>> context, weights = attention(query, memory, mask=mask)
    """

    def __init__(
        self,
        score: str | dict[str, Any] = "general",
        alignment: str | dict[str, Any] = "soft",
        values: str = "shared",
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
        policy = self.dtype_policy
        self.score = spec("score", SCORES, score, dtype=policy, name="score")
        self.alignment = spec("alignment", ALIGNMENTS, alignment, dtype=policy, name="alignment")
        self.has_split_values = base.is_split(values)
        self.dropout = Dropout(dropout, dtype=policy)

    @property
    def stochastic(self) -> bool:
        """Whether weights are sampled in training, so that REINFORCE has to train them."""
        return bool(self.alignment.stochastic)

    def build(
        self,
        query_shape: tuple[int | None, ...],
        memory_shape: tuple[int | None, ...],
        values_shape: tuple[int | None, ...] | None = None,
    ) -> None:
        if self.has_split_values and values_shape is None:
            memory_shape = (*memory_shape[:-1], base.split_depths(int(memory_shape[-1] or 0))[0])
        self.score.build(query_shape, memory_shape)
        self.alignment.build(query_shape)
        self.has_single_query = query_shape[1] == 1

    def prepare(self, memory: Tensor, mask: Tensor = None, values: Tensor = None) -> State:
        """Compute everything that ``attend_with_distribution`` needs of a memory.

        Args:
            memory: ``[batch, source, depth]``.
            mask: ``[batch, source]``; or ``[batch, target, source]`` for all queries at once.
            values: ``[batch, source, value_depth]``; see the class for the default.

        Raises:
            ValueError: the layer is not built, or a tensor has the wrong rank.
        """
        base.check_shapes(memory=memory, values=values, mask=mask)
        self.check_built()
        keys, values = self.keys_and_values(memory, values)
        if mask is None:
            mask = ops.ones(ops.shape(memory)[:2], dtype="bool")
        mask = self.score.valid_mask(mask)
        prepared = {"keys": self.score.prepare(keys), "values": values, "mask": mask}
        if self.alignment.window is not None:
            by_query = _by_query(mask)
            prepared["lengths"] = local.source_lengths(by_query, by_query)
        return prepared

    def attend_with_distribution(
        self,
        query: Tensor,
        prepared: State,
        position: Tensor = None,
        training: bool | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the context and weights of a query, and the weights' distribution.

        The distribution, from which the weights were sampled, is ``[batch, target, source]`` and
        equals the weights unless the alignment is a hard one.

        Args:
            query: ``[batch, target, query_depth]``.
            prepared: the result of ``prepare``; for a score with coverage also ``coverage``
                ``[batch, target, source]``, the sum of the weights of all previous steps.
            position: the decoder step of each query, ``[batch or 1, target]``; the default for
                several queries is 0, 1, 2, ...
            training: whether dropout and sampled alignments are on; None for the mode of the layer
                whose ``call`` is running.

        Raises:
            ValueError: a single query without a position, on which the alignment depends.
        """
        base.check_shapes(query=query)
        training = base.resolve_training(training)
        key = prepared.get("random_key")
        target = ops.shape(query)[1]
        position = self.alignment.resolve_position(position, target, training, key)
        if self.alignment.window is not None and not training and not self.score.coverage:
            context, weights = self._attend_locally(query, prepared, position)
            return context, weights, weights
        return self._attend_globally(query, prepared, position, training)

    def _attend_globally(
        self, query: Tensor, prepared: State, position: Tensor, training: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Score the whole source."""
        coverage = (prepared.get("coverage"),) if self.score.coverage else ()
        weights, distribution = self.alignment.align_with_distribution(
            self.score.match(query, prepared["keys"], *coverage),
            mask=_by_query(prepared["mask"]),
            query=query,
            position=position,
            training=training,
            random_key=prepared.get("random_key"),
        )
        context = ops.matmul(self.dropout(weights, training=training), prepared["values"])
        return context, weights, distribution

    def _attend_locally(
        self, query: Tensor, prepared: State, position: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return context and weights of an alignment with windows, in the faster way.

        Windows and the whole source have equal results (``local.attend_in_windows``).
        """

        def in_windows() -> tuple[Tensor, Tensor]:
            return local.attend_in_windows(self.score, self.alignment, query, prepared, position)

        def everywhere() -> tuple[Tensor, Tensor]:
            return self._attend_globally(query, prepared, position, False)[:2]

        use_windows = local.should_use_windows(self.alignment.window, query, prepared)
        if isinstance(use_windows, bool):
            return in_windows() if use_windows else everywhere()
        return ops.cond(use_windows, in_windows, everywhere)

    def call(
        self,
        query: Tensor,
        memory: Tensor,
        values: Tensor = None,
        mask: Tensor = None,
        position: Tensor = None,
        return_context: bool = True,
        return_weights: bool = True,
        return_scores: bool = False,
        return_distribution: bool = False,
        query_mask: Tensor = None,
        memory_mask: Tensor = None,
        values_mask: Tensor = None,
        training: bool = False,
    ) -> Any:
        """Attend to ``memory``.

        Args:
            query: ``[batch, target, query_depth]``.
            memory: ``[batch, source, depth]``.
            values: ``[batch, source, value_depth]``.
            mask: ``[batch, source]`` or ``[batch, target, source]``, in addition to Keras's masks.
            position: as in ``attend_with_distribution``. A layer that was built for more than one
                query, or for any number, also counts a single one from 0.
            return_context: return the context.
            return_weights: return the weights, before dropout.
            return_scores: return the scores before mask and alignment, ``[batch, target, source]``.
            return_distribution: return the distribution from which weights were sampled, for
                ``Reinforce``.
            query_mask: ``[batch, target]``; the weights of masked queries are zero.
            memory_mask: ``[batch, source]``.
            values_mask: ``[batch, source]``.
            training: whether dropout and sampled alignments are on.

        Returns:
            The requested outputs in the order of the arguments; alone, not in a tuple.
        """
        base.check_shapes(
            query=query,
            memory=memory,
            values=values,
            mask=mask,
            query_mask=query_mask,
            memory_mask=memory_mask,
            values_mask=values_mask,
        )
        self._query_mask = query_mask
        mask = base.combine_masks(
            mask, memory_mask, values_mask, memory=memory, query_mask=query_mask
        )
        prepared = self.prepare(memory, mask, values)
        if position is None and not self.has_single_query:
            # A model for targets of any length also gets targets of one token.
            position = ops.arange(ops.shape(query)[1])[None]
        outputs = self.attend_with_distribution(query, prepared, position, training)
        context, weights, distribution = outputs
        scores = self.score.match(query, prepared["keys"]) if return_scores else None
        return base.select_outputs(
            (context, return_context),
            (weights, return_weights),
            (scores, return_scores),
            (distribution, return_distribution),
        )


def _by_query(mask: Tensor) -> Tensor:
    """Return a mask with an axis for the query, ``[batch, 1 or target, source]``."""
    return mask if len(mask.shape) == 3 else mask[:, None]
