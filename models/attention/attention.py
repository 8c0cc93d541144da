"""Attention as a weighted sum of values: a score, an alignment, a sum."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.attention import windows
from models.attention.alignments import ALIGNMENTS
from models.attention.alignments.local import lengths
from models.attention.scores import SCORES
from models.serialization import register, spec


@register
class Attention(keras.layers.Layer):
    """Looks at a memory with a query and sums what it sees.

    Any score goes with any alignment. A decoder that asks often about one memory calls
    ``prepare`` once and ``attend`` at every step; ``call`` does both.

    Args:
        score: a name in ``SCORES``, or ``{"type": name, **options}``.
        alignment: a name in ``ALIGNMENTS``, or ``{"type": name, **options}``.

    Shapes: query ``[batch, target, query_depth]``, memory ``[batch, source, depth]``, mask
    ``[batch, source]`` (true at real positions) or None. Gives the context ``[batch, target,
    depth]`` and the alignment weights ``[batch, target, source]``; both are zero where all of the
    memory is masked.

    Raises:
        ValueError: there is no such score or alignment, or it refuses an option; when built, the
            score refuses the depths.

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
        self.settings: dict[str, Any] = {"score": score, "alignment": alignment}
        policy = self.dtype_policy
        self.score = spec("score", SCORES, score, dtype=policy, name="score")
        self.alignment = spec("alignment", ALIGNMENTS, alignment, dtype=policy, name="alignment")

    @property
    def stochastic(self) -> bool:
        """Whether weights are drawn in training, so that the draw has to be rewarded."""
        return bool(self.alignment.stochastic)

    def build(
        self, query_shape: tuple[int | None, ...], memory_shape: tuple[int | None, ...]
    ) -> None:
        self.score.build(query_shape, memory_shape)
        self.alignment.build(query_shape)
        self.built = True

    def prepare(self, memory: Any, mask: Any = None) -> dict[str, Any]:
        """What ``attend`` needs of a memory, computed once."""
        if mask is None:
            mask = ops.ones(ops.shape(memory)[:2], dtype="bool")
        mask = self.score.reach(mask)
        prepared = {"keys": self.score.prepare(memory), "values": memory, "mask": mask}
        if self.alignment.window is not None:
            prepared["lengths"] = lengths(mask[:, None], mask[:, None])
        return prepared

    def draw(self, prepared: dict[str, Any]) -> dict[str, Any]:
        """A prepared memory with the random numbers for all looks at it in training.

        A decoder that looks from inside of a loop calls this before the loop; without it every
        look draws its own, which changes the state of a generator. Alignments that never sample
        leave the memory as it is.
        """
        drawn = self.alignment.draw()
        return prepared if drawn is None else {**prepared, "drawn": drawn}

    def attend(
        self, query: Any, prepared: dict[str, Any], position: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        """Context and weights for a query against a prepared memory.

        Args:
            query: ``[batch, target, query_depth]``.
            prepared: what ``prepare`` gave.
            position: which step of the decoder each query is, ``[batch or 1, target]``; by
                default the first, second, ... of the queries given.
            training: whether alignments that sample do so.
        """
        context, weights, _ = self.look(query, prepared, position, training)
        return context, weights

    def look(
        self, query: Any, prepared: dict[str, Any], position: Any = None, training: bool = False
    ) -> tuple[Any, Any, Any]:
        """As ``attend``, and the distribution that the weights were drawn from.

        The distribution is ``[batch, target, source]``: the weights themselves, unless the
        alignment is a hard one.
        """
        if position is None:
            position = ops.arange(ops.shape(query)[1])[None]
        if self.alignment.window is not None and not training:
            context, weights = self._look_locally(query, prepared, position)
            return context, weights, weights
        return self._look(query, prepared, position, training)

    def _look(
        self, query: Any, prepared: dict[str, Any], position: Any, training: bool
    ) -> tuple[Any, Any, Any]:
        """``look`` at all of the source."""
        weights, distribution = self.alignment.look(
            self.score.match(query, prepared["keys"]),
            mask=prepared["mask"][:, None, :],
            query=query,
            position=position,
            training=training,
            drawn=prepared.get("drawn"),
        )
        return ops.matmul(weights, prepared["values"]), weights, distribution

    def _look_locally(self, query: Any, prepared: dict[str, Any], position: Any) -> tuple[Any, Any]:
        """Context and weights of an alignment with windows, found in the cheaper way."""

        def through_windows() -> tuple[Any, Any]:
            return windows.look(self.score, self.alignment, query, prepared, position)

        def at_all() -> tuple[Any, Any]:
            return self._look(query, prepared, position, False)[:2]

        pay = windows.pay(self.alignment.window, query, prepared)
        if isinstance(pay, bool):
            return through_windows() if pay else at_all()
        return ops.cond(pay, through_windows, at_all)

    def call(
        self, query: Any, memory: Any, mask: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        return self.attend(query, self.prepare(memory, mask), training=training)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
