"""Attention whose weights are the answer: a pointer to one of the inputs."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.attention.alignments.base import MASKED, masked_softmax
from models.attention.scores import SCORES
from models.serialization import register, spec


@register
class Pointer(keras.layers.Layer):
    """Chooses among the positions of a memory: nothing is summed, the weights are the output.

    Vinyals et al. 2015, "Pointer Networks", §2.3: u = score(q, k), p = softmax(u). With ``clip``
    u becomes C · tanh(u), which keeps a search exploring (Bello et al. 2017, "Neural
    Combinatorial Optimization with Reinforcement Learning", §A.2).

    Args:
        score: a name in ``SCORES``, or ``{"type": name, **options}``.
        clip: C, the greatest logit there can be; None to leave logits as they are.

    Shapes: query ``[batch, target, query_depth]``, memory ``[batch, source, depth]``, mask of the
    memory ``[batch, source]`` or None; ``choices``, what may be pointed at now (the cities not
    yet visited), ``[batch, target, source]`` or None. Logits and probabilities are ``[batch,
    target, source]``, float32. Where nothing may be chosen the probabilities are all 0.

    Raises:
        ValueError: there is no such score, it refuses an option, or ``clip`` is not above 0.

    Example:
        >>> pointer = Pointer(score="additive", clip=10.0)
        >>> probabilities = pointer(query, memory, mask=mask)
    """

    def __init__(
        self, score: str | dict[str, Any] = "additive", clip: float | None = None, **kwargs: Any
    ):
        super().__init__(**kwargs)
        if clip is not None and clip <= 0:
            raise ValueError(f"A pointer's logits are clipped to a number above 0, not {clip}.")
        self.settings: dict[str, Any] = {"score": score, "clip": clip}
        self.clip = clip
        self.score = spec("score", SCORES, score, dtype=self.dtype_policy, name="score")

    def build(
        self, query_shape: tuple[int | None, ...], memory_shape: tuple[int | None, ...]
    ) -> None:
        self.score.build(query_shape, memory_shape)
        self.built = True

    def prepare(self, memory: Any, mask: Any = None) -> dict[str, Any]:
        """What ``logits`` needs of a memory, computed once."""
        if mask is None:
            mask = ops.ones(ops.shape(memory)[:2], dtype="bool")
        return {"keys": self.score.prepare(memory), "mask": self.score.reach(mask)}

    def logits(self, query: Any, prepared: dict[str, Any], choices: Any = None) -> Any:
        """The logits of all positions, far below all others where nothing can be chosen."""
        return ops.where(self._mask(prepared, choices), self._scores(query, prepared), MASKED)

    def probabilities(self, query: Any, prepared: dict[str, Any], choices: Any = None) -> Any:
        """The softmax of the logits over what can be chosen."""
        return masked_softmax(self._scores(query, prepared), self._mask(prepared, choices))

    def call(self, query: Any, memory: Any, mask: Any = None, choices: Any = None) -> Any:
        return self.probabilities(query, self.prepare(memory, mask), choices)

    def _scores(self, query: Any, prepared: dict[str, Any]) -> Any:
        scores = ops.cast(self.score.match(query, prepared["keys"]), "float32")
        return scores if self.clip is None else self.clip * ops.tanh(scores)

    def _mask(self, prepared: dict[str, Any], choices: Any) -> Any:
        mask = prepared["mask"][:, None, :]
        return mask if choices is None else ops.logical_and(mask, choices)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
