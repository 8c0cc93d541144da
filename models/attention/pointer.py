"""Attention whose weights are the output: a pointer to one of the inputs."""

from typing import Any

from keras import ops

from regard.models.attention.alignments.base import MASKED, masked_softmax
from regard.models.attention.base import AttentionLayer, check_shapes, combine_masks
from regard.models.attention.scores import SCORES
from regard.models.serialization import constructor_arguments, register, spec
from regard.models.tensors import State, Tensor


@register
class Pointer(AttentionLayer):
    """Choose one of the positions of a memory: the weights are the output.

    Vinyals et al. 2015, "Pointer Networks", §2.3: u = score(q, k), p = softmax(u). With ``clip``
    u becomes C · tanh(u), which encourages exploration (Bello et al. 2017, "Neural
    Combinatorial Optimization with Reinforcement Learning", §A.2).

    Args:
        score: a name in ``SCORES``, or ``{"type": name, **options}``.
        clip: C, the maximum logit; None for no clipping.

    Shapes: query ``[batch, target, query_depth]``, memory ``[batch, source, depth]``, mask of the
    memory ``[batch, source]`` or ``[batch, target, source]`` or None, in addition to Keras's
    masks; ``choices``, the positions that may be chosen now (for example cities that are not yet
    visited), ``[batch, target, source]`` or None. Logits and probabilities are ``[batch, target,
    source]``, float32. Without any choice, and for a masked query, all probabilities are 0.

    Raises:
        ValueError: a score or option is unknown, ``clip`` is not above 0, or a tensor has the
            wrong rank.

    Example:
        >>> pointer = Pointer(score="additive", clip=10.0)
        >>> probabilities = pointer(query, memory, mask=mask)
    """

    def __init__(
        self, score: str | dict[str, Any] = "additive", clip: float | None = None, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.settings = constructor_arguments(locals())
        if clip is not None and clip <= 0:
            raise ValueError(f"clip must be above 0, not {clip}.")
        self.clip = clip
        self.score = spec("score", SCORES, score, dtype=self.dtype_policy, name="score")

    def build(
        self, query_shape: tuple[int | None, ...], memory_shape: tuple[int | None, ...]
    ) -> None:
        self.score.build(query_shape, memory_shape)

    def prepare(self, memory: Tensor, mask: Tensor = None) -> State:
        """Compute everything that ``logits`` needs of a memory."""
        check_shapes(memory=memory, mask=mask)
        self.check_built()
        if mask is None:
            mask = ops.ones(ops.shape(memory)[:2], dtype="bool")
        return {"keys": self.score.prepare(memory), "mask": self.score.valid_mask(mask)}

    def logits(self, query: Tensor, prepared: State, choices: Tensor = None) -> Tensor:
        """Return the logits of all positions; excluded positions get a large negative value."""
        return ops.where(self._mask(prepared, choices), self._scores(query, prepared), MASKED)

    def probabilities(self, query: Tensor, prepared: State, choices: Tensor = None) -> Tensor:
        """Return the softmax of the logits over the allowed positions."""
        return masked_softmax(self._scores(query, prepared), self._mask(prepared, choices))

    def call(
        self,
        query: Tensor,
        memory: Tensor,
        mask: Tensor = None,
        choices: Tensor = None,
        query_mask: Tensor = None,
        memory_mask: Tensor = None,
    ) -> Tensor:
        check_shapes(
            query=query,
            memory=memory,
            mask=mask,
            choices=choices,
            query_mask=query_mask,
            memory_mask=memory_mask,
        )
        self._query_mask = query_mask
        mask = combine_masks(mask, memory_mask, memory=memory, query_mask=query_mask)
        return self.probabilities(query, self.prepare(memory, mask), choices)

    def _scores(self, query: Tensor, prepared: State) -> Tensor:
        check_shapes(query=query)
        scores = ops.cast(self.score.match(query, prepared["keys"]), "float32")
        return scores if self.clip is None else self.clip * ops.tanh(scores)

    def _mask(self, prepared: State, choices: Tensor) -> Tensor:
        check_shapes(choices=choices)
        mask = prepared["mask"]
        mask = mask if len(mask.shape) == 3 else mask[:, None]
        return mask if choices is None else ops.logical_and(mask, choices)
