"""Attention as a weighted sum of values: a score, an alignment and a sum."""

from __future__ import annotations

from typing import Any

from keras import ops

from regard.models.attention.alignments import ALIGNMENTS
from regard.models.attention.alignments.local import (
    attend_in_windows,
    should_use_windows,
    source_lengths,
)
from regard.models.attention.scores import SCORES
from regard.models.serialization import ConfiguredLayer, constructor_arguments, register, spec
from regard.models.tensors import State, Tensor


@register
class Attention(ConfiguredLayer):
    """Attend to a memory with a query and return the weighted sum of the memory.

    Any score can be combined with any alignment. A decoder that attends to one memory at every
    step calls ``prepare`` once and ``attend_with_distribution`` at every step; ``call`` does both.

    Args:
        score: a name in ``SCORES``, or ``{"type": name, **options}``.
        alignment: a name in ``ALIGNMENTS``, or ``{"type": name, **options}``.

    Shapes: query ``[batch, target, query_depth]``, memory ``[batch, source, depth]``, mask
    ``[batch, source]`` (true at valid positions) or None. Returns the context ``[batch, target,
    depth]`` and the weights ``[batch, target, source]``; both are zero for a row that is masked
    completely.

    Raises:
        ValueError: a score, alignment or option is unknown; or, in ``build``, the score does not
            support the depths.

    Example:
        >>> attention = Attention(score="general", alignment={"type": "local_p", "window": 5})
        >>> context, weights = attention(query, memory, mask=mask)
    """

    def __init__(
        self,
        score: str | dict[str, Any] = "general",
        alignment: str | dict[str, Any] = "soft",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
        policy = self.dtype_policy
        self.score = spec("score", SCORES, score, dtype=policy, name="score")
        self.alignment = spec("alignment", ALIGNMENTS, alignment, dtype=policy, name="alignment")

    @property
    def stochastic(self) -> bool:
        """Whether weights are sampled in training, so that REINFORCE has to train them."""
        return bool(self.alignment.stochastic)

    def build(
        self, query_shape: tuple[int | None, ...], memory_shape: tuple[int | None, ...]
    ) -> None:
        self.score.build(query_shape, memory_shape)
        self.alignment.build(query_shape)
        self.built = True

    def prepare(self, memory: Tensor, mask: Tensor = None) -> State:
        """Compute everything that ``attend_with_distribution`` needs of a memory."""
        if mask is None:
            mask = ops.ones(ops.shape(memory)[:2], dtype="bool")
        mask = self.score.valid_mask(mask)
        prepared = {"keys": self.score.prepare(memory), "values": memory, "mask": mask}
        if self.alignment.window is not None:
            prepared["lengths"] = source_lengths(mask[:, None], mask[:, None])
        return prepared

    def attend_with_distribution(
        self, query: Tensor, prepared: State, position: Tensor = None, training: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the context and weights of a query, and the weights' distribution.

        The distribution, from which the weights were sampled, is ``[batch, target, source]`` and
        equals the weights unless the alignment is a hard one.

        Args:
            query: ``[batch, target, query_depth]``.
            prepared: the result of ``prepare``; for a score with coverage also ``coverage``
                ``[batch, target, source]``, the sum of the weights of all previous steps.
            position: the decoder step of each query, ``[batch or 1, target]``; the default is
                0, 1, 2, ...
            training: whether alignments are sampled.
        """
        if position is None:
            position = ops.arange(ops.shape(query)[1])[None]
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
            mask=prepared["mask"][:, None, :],
            query=query,
            position=position,
            training=training,
            random_key=prepared.get("random_key"),
        )
        return ops.matmul(weights, prepared["values"]), weights, distribution

    def _attend_locally(
        self, query: Tensor, prepared: State, position: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return context and weights of an alignment with windows, in the faster way."""

        def in_windows() -> tuple[Tensor, Tensor]:
            return attend_in_windows(self.score, self.alignment, query, prepared, position)

        def everywhere() -> tuple[Tensor, Tensor]:
            return self._attend_globally(query, prepared, position, False)[:2]

        use_windows = should_use_windows(self.alignment.window, query, prepared)
        if isinstance(use_windows, bool):
            return in_windows() if use_windows else everywhere()
        return ops.cond(use_windows, in_windows, everywhere)

    def call(
        self, query: Tensor, memory: Tensor, mask: Tensor = None, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        prepared = self.prepare(memory, mask)
        return self.attend_with_distribution(query, prepared, training=training)[:2]
