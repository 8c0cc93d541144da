"""The base class of the decoders with one attention per step."""

from typing import Any

from keras import ops

from regard.models.attention.attention import Attention
from regard.models.attention.base import split_depths
from regard.models.attention.multi_head import MultiHeadAttention
from regard.models.decoders.base import Decoder
from regard.models.tensors import Memory, State, Tensor

# The alignment, and with a stochastic decoder also the distribution that it was sampled from.
Alignments = tuple[Tensor, ...]


def context_depth(memory_depth: int, attention: dict[str, Any] | None) -> int:
    """Return the depth of the contexts of a memory.

    Args:
        memory_depth: the depth of the memory's values.
        attention: as in ``AttendingDecoder.create_attention``.
    """
    options = attention or {}
    # Several heads project their contexts to the depth of the memory.
    is_split = options.get("values", "shared") == "split" and options.get("heads", 1) == 1
    return split_depths(memory_depth)[1] if is_split else memory_depth


class AttendingDecoder(Decoder):
    """Base class of the decoders that attend to the memory once per step, or not at all.

    Without attention all steps have the same context, and alignments are zero.
    """

    attention: Attention | MultiHeadAttention | None = None

    def create_attention(
        self, memory_depth: int, attention: dict[str, Any] | None, copies: bool
    ) -> None:
        """Create the layer of the attention.

        Args:
            memory_depth: the depth of the memory's values.
            attention: the arguments of ``Attention``, and ``heads``, the number of heads of a
                ``MultiHeadAttention`` in its place if there are several; None for no attention.
            copies: whether the decoder copies source tokens.

        Raises:
            ValueError: the attention is unknown; ``heads`` does not divide ``memory_depth``, or
                comes with a stochastic alignment; or ``copies`` without attention.
        """
        options = {**(attention or {}), "dtype": self.dtype_policy, "name": "attention"}
        self.attention_heads = options.pop("heads", 1)
        if self.attention_heads > 1:
            self.attention = MultiHeadAttention(self.attention_heads, memory_depth, **options)
            if self.stochastic:
                raise ValueError("REINFORCE needs one choice per step: use one head.")
        elif attention is not None:
            self.attention = Attention(**options)
        elif copies:
            raise ValueError(
                "A pointer-generator copies source tokens by attention weights: set `attention`."
            )
        self.context_depth = context_depth(memory_depth, attention)

    @property
    def stochastic(self) -> bool:
        return self.attention is not None and self.attention.stochastic

    @property
    def covers(self) -> bool:
        """Whether the score depends on the attention of the previous steps."""
        return self.attention is not None and self.attention.score.coverage

    def fixed_context(self, memory: Memory) -> Tensor:
        """Return the context ``[batch, depth]`` of all steps without attention."""
        raise TypeError(f"{type(self).__name__} does not implement fixed_context.")

    def prepare(self, memory: Memory) -> State:
        """Return what every step needs of a memory."""
        self.check_built()
        if self.attention is None:
            prepared = {"context": self.fixed_context(memory)[:, None], "mask": memory["mask"]}
        else:
            prepared = self.attention.prepare(memory["values"], memory["mask"])
        return {**prepared, "ids": memory["ids"]} if self.copies else prepared

    def unroll(
        self, tokens: Tensor, memory: Memory, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        logits, alignments = self._unroll(tokens, memory, training)
        return logits, alignments[0]

    def unroll_with_distribution(
        self, tokens: Tensor, memory: Memory, training: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``unroll`` and the distribution from which the alignments were sampled.

        The distribution is ``[batch, target, source]``. It equals the alignments unless the
        decoder is ``stochastic``.
        """
        logits, alignments = self._unroll(tokens, memory, training)
        return logits, alignments[0], alignments[-1]

    def _unroll(self, tokens: Tensor, memory: Memory, training: bool) -> tuple[Tensor, Alignments]:
        """Return the logits and alignments of all steps; see ``unroll``."""
        raise TypeError(f"{type(self).__name__} does not implement _unroll.")

    def _attend(
        self, query: Tensor, prepared: State, position: Tensor = None, training: bool = False
    ) -> tuple[Tensor, Alignments]:
        """Return the context ``[batch, target, depth]`` and alignments ``[batch, target, source]``.

        Args:
            query: ``[batch, target, units]``.
            prepared: ``state["memory"]``.
            position: the decoder step of each query, ``[batch, target]``; None for all steps from
                the first one on.
            training: whether alignments are sampled.
        """
        if self.attention is None:
            target = ops.shape(query)[1]
            weights = ops.cast(ops.zeros_like(prepared["mask"]), query.dtype)[:, None]
            context = ops.repeat(prepared["context"], target, axis=1)
            return context, (ops.repeat(weights, target, 1),)
        if position is None:
            position = ops.arange(ops.shape(query)[1])[None]
        context, *alignments = self.attention.attend_with_distribution(
            query, prepared, position, training
        )
        if self.attention_heads > 1:
            alignments = [ops.mean(weights, axis=1) for weights in alignments]
        return context, tuple(alignments if self.stochastic else alignments[:1])
