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
        # Several heads project their contexts after the sum over the source; see `_fold_context`.
        self.folds_context = self.attention_heads == 1

    def build(self, tokens_shape: Any = None) -> None:
        self.combine.build((None, None, self.context_depth + self.units))
        super().build(tokens_shape)

    def start(self, memory: Memory, max_length: Tensor = None, hypotheses: int = 1) -> State:
        state = super().start(memory, max_length, hypotheses)
        if self.folds_context:
            state["memory"] = self._fold_context(state["memory"])
        if self.input_feeding:
            state["attentional"] = ops.zeros_like(state["cells"][0][0])
        return state

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State, Tensor]:
        """Decode one token, in the order of the paper: h_t, a_t, c_t, h̃_t, logits."""
        embedded, prepared = self.embedding(tokens), state["memory"]
        inputs = self._loop_inputs(embedded)
        cells, hidden = self._advance(inputs, state["cells"], state.get("attentional"))
        context, alignments, progress = self._attend_once(hidden, prepared, self._progress(state))
        attentional = self._attentional(context, hidden, self._hidden_kernel())
        new_state = {"memory": prepared, "cells": cells, **progress}
        if self.input_feeding:
            new_state["attentional"] = attentional
        logits = self.output(attentional, embedded, alignments[0], prepared)
        return logits, new_state, alignments[0]

    def _attentional(self, context: Tensor, hidden: Tensor, hidden_kernel: Tensor) -> Tensor:
        """Return h̃ = tanh(W [c; h]).

        Args:
            context: c, or the sum of W_c times the values from ``_fold_context``.
            hidden: h.
            hidden_kernel: the result of ``_hidden_kernel``.
        """
        if not self.folds_context:
            return self.combine(ops.concatenate([context, hidden], axis=-1))
        hidden_kernel = ops.cast(hidden_kernel, self.compute_dtype)
        return ops.tanh(context + ops.matmul(hidden, hidden_kernel))

    def _fold_context(self, prepared: State) -> State:
        """Multiply the values by W_c once per sentence, instead of the context in each step.

        W has a part for each of its inputs, W [c; h] = W_c c + W_h h, and the context is a sum, so
        W_c c = W_c Σ a v = Σ a (W_c v). `tests/models/decoders/test_luong.py` compares both ways,
        and both with the paper.

        Processor time of a training step on one core, the median of six: 195 → 178 ms with 128
        units and 200 tokens, 1,180 → 1,166 ms with two layers of 256 and 8,000 (29 November 2026).
        To be deleted when it gains less than 3% with a small vocabulary.
        """
        name = "context" if self.attention is None else "values"
        kernel = ops.cast(self._split_kernel()[0], self.compute_dtype)
        folded = ops.matmul(ops.cast(prepared[name], self.compute_dtype), kernel)
        return {**prepared, name: folded}

    def _hidden_kernel(self) -> Tensor:
        """Return W_h for ``_attentional``.

        A loop takes it from outside: splitting W in each step would cost a gradient of its size.
        """
        return self._split_kernel()[1]

    def _split_kernel(self) -> list[Tensor]:
        """Return W_c and W_h, the parts of W that multiply the context and the hidden state."""
        return ops.split(self.combine.kernel, [self.context_depth])

    def _unroll(self, tokens: Tensor, memory: Memory, training: bool) -> tuple[Tensor, Alignments]:
        """Run ``step`` for all tokens; see ``unroll``.

        All tokens are known, so embeddings and logits of all steps are one product each, and
        without input feeding attention too.
        """
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
        kernel = self._hidden_kernel()

        def step(carry: tuple[Any, ...], inputs: list[Tensor]) -> tuple[Any, ...]:
            cells, attentional, progress, _ = carry
            cells, hidden = self._advance(inputs, cells, attentional)
            context, alignments, progress = self._attend_once(hidden, prepared, progress, training)
            attentional = self._attentional(context, hidden, kernel)
            return cells, attentional, progress, alignments

        alignments = self._zero_alignments(prepared, state["attentional"].dtype)
        start = (state["cells"], state["attentional"], self._progress(state), alignments)
        loop_inputs = self._loop_inputs(embedded, masks)
        _, (_, attentional, _, alignments) = scan_steps(step, start, loop_inputs)
        return batch_first(attentional), tuple(batch_first(x) for x in alignments)

    def _unroll_without_feeding(
        self, embedded: Tensor, masks: Sequence[Tensor], state: State, training: bool
    ) -> tuple[Tensor, Alignments]:
        """Run the recurrence first, then attention for all steps at once."""

        def step(carry: tuple[Any, Any], inputs: list[Tensor]) -> tuple[Any, Any]:
            cells, _ = carry
            return self._advance(inputs, cells)

        start = (state["cells"], ops.zeros_like(state["cells"][0][0]))
        loop_inputs = self._loop_inputs(embedded, masks)
        _, (_, hidden) = scan_steps(step, start, loop_inputs)
        hidden = batch_first(hidden)
        context, alignments = self._attend(hidden, state["memory"], training=training)
        return self._attentional(context, hidden, self._hidden_kernel()), alignments
