"""The Transformer decoder."""

from typing import Any

from keras import ops

from regard.models.attention.base import MASK_BIAS
from regard.models.decoders.base import Decoder
from regard.models.layers.embeddings import TokenEmbedding
from regard.models.layers.loops import append_step, initial_length
from regard.models.layers.transformer import BlockAttention, DecoderBlock, TransformerStack
from regard.models.serialization import register
from regard.models.tensors import Memory, State, Tensor


@register
class TransformerDecoder(TransformerStack, Decoder):
    """A stack of blocks of causal self-attention and attention to a memory.

    Vaswani et al. 2017, "Attention Is All You Need", §3.1. Works with the memory of any encoder:
    its keys and values are projected to the decoder's width once per sentence. While decoding, the
    keys and values of all hypotheses of a row are cached next to each other, together with a bias
    that hides from each hypothesis the entries of the others. A search that reorders hypotheses
    therefore reorders the bias and not the keys and values, and a step is linear in the number of
    cached entries. The alignment is the mean over the heads of the last block; with
    ``pointer_generator`` it also is the distribution of the copies (Enarvi et al. 2020, "Generating
    Medical Reports from Patient-Doctor Conversations Using Sequence-to-Sequence Models", §3).

    Args:
        vocabulary: the size of the target vocabulary.
        memory_depth: the depth of the memory's values.
        final_depth: the depth of an encoder's final states; unused.
        attention: ``score`` and ``alignment`` of the attention to the memory, each a name or
            ``{"type": name, **options}``. The default, also for None, is scaled_dot and soft,
            because without attention this decoder would have no information about the source.
        tied: use the embedding matrix as output matrix.
        pointer_generator: mix in copies of source tokens (``Copying``); needs one vocabulary for
            both sides.
        kwargs: as in ``TransformerStack``.

    Raises:
        ValueError: a name is unknown, ``heads`` does not divide ``embedding``, or the alignment
            needs REINFORCE.
    """

    head_names = ("cross", "target")

    def __init__(
        self,
        vocabulary: int,
        memory_depth: int,
        final_depth: int = 0,
        attention: dict[str, Any] | None = None,
        tied: bool = False,
        pointer_generator: bool = False,
        **kwargs: Any,
    ):
        super().__init__(vocabulary, **kwargs)
        attention = dict(attention or {})
        self.settings = {
            **self.settings,
            "memory_depth": memory_depth,
            "final_depth": final_depth,
            "attention": attention,
            "tied": tied,
            "pointer_generator": pointer_generator,
        }
        embedding, scale = self.settings["embedding"], self.settings["scale"]
        # Dropout follows the positions, so the embedding has none.
        self.embedding = TokenEmbedding(
            vocabulary, embedding, scale=scale, dtype=self.dtype_policy, name="embedding"
        )
        self.create_stack(DecoderBlock, memory_depth=memory_depth, cross=attention)
        if self.blocks[0].cross.stochastic:
            raise ValueError("REINFORCE needs one choice per step: use a recurrent decoder.")
        self.create_output(vocabulary, embedding, tied, pointer_generator)

    def build(self, tokens_shape: Any = None) -> None:
        self.build_output(self.settings["embedding"])
        self.build_stack()
        self.built = True

    def start(self, memory: Memory, max_length: Tensor = None, hypotheses: int = 1) -> State:
        """Return the state before the first token; see ``Decoder.start``.

        Raises:
            ValueError: ``max_length`` is missing, so the size of the caches is unknown.
        """
        if max_length is None:
            raise ValueError("A Transformer decoder needs max_length to allocate its caches.")
        batch = ops.shape(memory["mask"])[0]
        length = initial_length(memory["values"], max_length * hypotheses)
        # Of the entries of one step a hypothesis sees only its own.
        step_bias = ops.where(ops.eye(hypotheses, dtype="bool"), 0.0, MASK_BIAS)
        return {
            "memory": self._prepare(memory),
            "shared_cache": {
                "caches": [block.attention.cache(batch, length) for block in self.blocks],
                "step_bias": ops.tile(step_bias[None], (batch, 1, 1)),
                "position": ops.zeros((batch,), dtype="int32"),
            },
            "bias": ops.full((batch, length), MASK_BIAS, dtype="float32"),
        }

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State, Tensor]:
        prepared, caches, cache = state["memory"], [], state["shared_cache"]
        position, step_bias = ops.max(cache["position"], initial=0), cache["step_bias"]
        hypotheses = step_bias.shape[-1]
        bias = append_step(
            state["bias"], ops.reshape(step_bias, (-1, hypotheses)), 1, position * hypotheses
        )
        row_bias = ops.reshape(bias, (-1, hypotheses, ops.shape(bias)[1]))
        hidden, angles = self.embed(tokens[:, None], ops.reshape(position, (1, 1)), False)
        hidden, weights = hidden[:, 0], None
        for block, memory, block_cache in zip(
            self.blocks, prepared["blocks"], cache["caches"], strict=True
        ):
            hidden, block_cache, weights = block.step(
                hidden, memory, block_cache, row_bias, position, angles
            )
            caches.append(block_cache)
        alignment = ops.mean(weights, axis=1)  # [batch, hypotheses, source]
        alignment = ops.reshape(alignment, (-1, ops.shape(alignment)[-1]))
        cache = {**cache, "caches": caches, "position": cache["position"] + 1}
        new_state = {"memory": prepared, "shared_cache": cache, "bias": bias}
        hidden, embedded = self.normalize(hidden), self.embedding(tokens)
        return self.output(hidden, embedded, alignment, prepared), new_state, alignment

    def unroll(
        self,
        tokens: Tensor,
        memory: Memory,
        training: bool = False,
        layer: int | None = None,
        head: int | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Decode all tokens with teacher forcing; see ``Decoder``.

        Args:
            tokens: the previous tokens, ``[batch, target]``.
            memory: the output of the encoder.
            training: whether dropout is on.
            layer: the block of the alignments, from 1; None for the last one.
            head: their head, from 1; None for the mean of all heads.
        """
        logits, attention = self._unroll(tokens, memory, training)
        weights = attention[-1 if layer is None else layer - 1].cross
        return logits, ops.mean(weights, axis=1) if head is None else weights[:, head - 1]

    def heads(self, tokens: Tensor, memory: Memory) -> dict[str, Tensor]:
        _, attention = self._unroll(tokens, memory, False)
        return {
            "cross": ops.stack([block.cross for block in attention], axis=1),
            "target": ops.stack([block.target for block in attention], axis=1),
        }

    def _unroll(
        self, tokens: Tensor, memory: Memory, training: bool
    ) -> tuple[Tensor, list[BlockAttention]]:
        """Return the logits and the attention weights of every block."""
        position = ops.arange(ops.shape(tokens)[1])[None]
        hidden, angles = self.embed(tokens, position, training)
        attention, prepared = [], self._prepare(memory)
        for block, block_memory in zip(self.blocks, prepared["blocks"], strict=True):
            hidden, weights = block(hidden, block_memory, angles, training=training)
            attention.append(weights)
        hidden, embedded = self.normalize(hidden, training), self.embedding(tokens)
        alignment = ops.mean(attention[-1].cross, axis=1)
        return self.output(hidden, embedded, alignment, prepared), attention

    def _prepare(self, memory: Memory) -> State:
        """Project the memory for every block, once per sentence."""
        self.check_built()
        values, mask = memory["values"], memory["mask"]
        ids = {"ids": memory["ids"]} if self.copies else {}
        blocks = [block.prepare(values, mask) for block in self.blocks]
        return {"mask": mask, "blocks": blocks, **ids}
