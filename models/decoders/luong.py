"""The decoder of Luong et al.: h_t → alignment → context → attentional state."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from regard.models.decoders.attending import Alignments
from regard.models.decoders.recurrent import RecurrentDecoder
from regard.models.layers.loops import batch_first, scan_steps
from regard.models.serialization import register
from regard.models.tensors import Memory, State, Tensor


@register
class LuongDecoder(RecurrentDecoder):
    """A stack of recurrent layers that attends to the memory after every step.

    Luong et al. 2015, §3: h_t = RNN(y_{t-1}, h_{t-1}), a_t = align(score(h_t, memory)),
    c_t = Σ a_t memory, h̃_t = tanh(W [c_t; h_t]), logits = W_s h̃_t. With input feeding (§3.3)
    h̃_{t-1} is an additional input of the first layer.

    Args:
        vocabulary: the size of the target vocabulary.
        memory_depth: the depth of the memory's values.
        final_depth: the depth of the encoder's final states; 0 if there are none.
        units: the size of a state and of the attentional state.
        input_feeding: feed the attentional state into the next step.
        kwargs: as in ``RecurrentDecoder``. A score with coverage needs ``input_feeding``.
    """

    def __init__(
        self,
        vocabulary: int,
        memory_depth: int,
        final_depth: int,
        units: int = 256,
        input_feeding: bool = True,
        **kwargs: Any,
    ):
        extra = units if input_feeding else 0
        super().__init__(vocabulary, memory_depth, final_depth, units=units, extra=extra, **kwargs)
        self.settings["input_feeding"] = self.input_feeding = input_feeding
        self.combine = keras.layers.Dense(
            units, activation="tanh", use_bias=False, dtype=self.dtype_policy, name="combine"
        )

    def build(self, tokens_shape: Any = None) -> None:
        self.combine.build((None, None, self.context_depth + self.units))
        super().build(tokens_shape)

    def start(self, memory: Memory, max_length: Tensor = None, hypotheses: int = 1) -> State:
        state = super().start(memory, max_length, hypotheses)
        if self.attention_heads == 1:
            # W [c; h] = Σ a (W_c memory) + W_h h, so W_c multiplies the memory once per sentence.
            prepared, name = state["memory"], "context" if self.attention is None else "values"
            kernel = ops.cast(self._split_kernel()[0], self.compute_dtype)
            prepared[name] = ops.matmul(ops.cast(prepared[name], self.compute_dtype), kernel)
        if self.input_feeding:
            state["attentional"] = ops.zeros_like(state["cells"][0][0])
        return state

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State, Tensor]:
        embedded, prepared = self.embedding(tokens), state["memory"]
        inputs = self._loop_inputs(embedded)
        cells, hidden = self._advance(inputs, state["cells"], state.get("attentional"))
        context, alignments, progress = self._attend_once(hidden, prepared, self._progress(state))
        attentional = self._attentional(context, hidden, self._split_kernel()[1])
        new_state = {"memory": prepared, "cells": cells, **progress}
        if self.input_feeding:
            new_state["attentional"] = attentional
        logits = self.output(attentional, embedded, alignments[0], prepared)
        return logits, new_state, alignments[0]

    def _unroll(self, tokens: Tensor, memory: Memory, training: bool) -> tuple[Tensor, Alignments]:
        state = self._start_unroll(memory, training)
        embedded, masks = self._embed(tokens, training)
        unroll = self._unroll_feeding if self.input_feeding else self._unroll_without_feeding
        attentional, alignments = unroll(embedded, masks, state, training)
        attentional = self.dropout(attentional, training=training)
        logits = self.output(attentional, batch_first(embedded), alignments[0], state["memory"])
        return logits, alignments

    def _unroll_feeding(
        self, embedded: Tensor, masks: Sequence[Tensor], state: State, training: bool
    ) -> tuple[Tensor, Alignments]:
        """Run recurrence and attention in one loop: each step needs the previous context."""
        prepared = state["memory"]
        kernel = self._split_kernel()[1]  # split outside of the loop, where its gradient is cheap

        def step(carry: tuple[Any, ...], inputs: list[Tensor]) -> tuple[Any, Any]:
            cells, attentional, progress, _ = carry
            cells, hidden = self._advance(inputs, cells, attentional)
            context, alignments, progress = self._attend_once(hidden, prepared, progress, training)
            attentional = self._attentional(context, hidden, kernel)
            carry = (cells, attentional, progress, alignments)
            return carry, carry

        alignments = self._zero_alignments(prepared, state["attentional"].dtype)
        start = (state["cells"], state["attentional"], self._progress(state), alignments)
        loop_inputs = self._loop_inputs(embedded, masks)
        _, (_, attentional, _, alignments) = scan_steps(step, start, loop_inputs)
        return batch_first(attentional), tuple(batch_first(x) for x in alignments)

    def _unroll_without_feeding(
        self, embedded: Tensor, masks: Sequence[Tensor], state: State, training: bool
    ) -> tuple[Tensor, Alignments]:
        """Run the recurrence first, then attention for all steps at once."""

        def step(carry: tuple[Any, ...], inputs: list[Tensor]) -> tuple[Any, Any]:
            carry = self._advance(inputs, carry[0])
            return carry, carry

        start = (state["cells"], ops.zeros_like(state["cells"][0][0]))
        loop_inputs = self._loop_inputs(embedded, masks)
        _, (_, hidden) = scan_steps(step, start, loop_inputs)
        hidden = batch_first(hidden)
        context, alignments = self._attend(hidden, state["memory"], training=training)
        return self._attentional(context, hidden, self._split_kernel()[1]), alignments

    def _attentional(self, context: Tensor, hidden: Tensor, kernel: Tensor) -> Tensor:
        """Return tanh(W [c; h]); with one head ``context`` is already multiplied by its part."""
        if self.attention_heads > 1:
            return self.combine(ops.concatenate([context, hidden], axis=-1))
        return ops.tanh(context + ops.matmul(hidden, ops.cast(kernel, self.compute_dtype)))

    def _split_kernel(self) -> list[Tensor]:
        """Return the parts of W that multiply the context and the hidden state."""
        return ops.split(self.combine.kernel, [self.context_depth])
