"""The decoder of Bahdanau et al.: h_{t-1} → alignment → context → h_t."""

from typing import Any

import keras
from keras import ops

from regard.models.decoders.attending import Alignments, context_depth
from regard.models.decoders.recurrent import RecurrentDecoder
from regard.models.layers.loops import batch_first, scan_steps
from regard.models.serialization import check_name, register
from regard.models.tensors import Memory, State, Tensor

READOUTS = ("maxout", "tanh")


@register
class BahdanauDecoder(RecurrentDecoder):
    """A stack of recurrent layers that attends to the memory before every step.

    Bahdanau et al. 2015, §3.1 and §A.2.2: a_t = align(score(h_{t-1}, memory)), c_t = Σ a_t memory,
    h_t = RNN([y_{t-1}; c_t], h_{t-1}), logits = W_o t_t, where the readout t_t is a function of
    h_t, y_{t-1} and c_t (eq. 4 of §3.1; §A.2.2 uses h_{t-1}). The query is the state of the top
    layer; the context is an input of the first layer.

    Args:
        vocabulary: the size of the target vocabulary.
        memory_depth: the depth of the memory's values.
        final_depth: the depth of the encoder's final states; 0 if there are none.
        units: the size of a state and of the readout.
        readout: ``maxout``, the maximum of each pair of ``2 * units`` sums (Goodfellow et al.
            2013), or ``tanh`` of ``units`` sums.
        kwargs: as in ``RecurrentDecoder``.

    Raises:
        ValueError: the readout is unknown.
    """

    def __init__(
        self,
        vocabulary: int,
        memory_depth: int,
        final_depth: int,
        units: int = 256,
        readout: str = "maxout",
        **kwargs: Any,
    ):
        check_name("readout", READOUTS, readout)
        extra = context_depth(memory_depth, kwargs.get("attention"))
        super().__init__(vocabulary, memory_depth, final_depth, units=units, extra=extra, **kwargs)
        self.settings["readout"] = readout
        self.maxout_pieces = 2 if readout == "maxout" else 1
        self.readout = keras.layers.Dense(
            self.maxout_pieces * units,
            activation="tanh" if readout == "tanh" else None,
            dtype=self.dtype_policy,
            name="readout",
        )

    def build(self, tokens_shape: Any = None) -> None:
        depths = self.units + self.settings["embedding"] + self.context_depth
        self.readout.build((None, None, depths))
        super().build(tokens_shape)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State, Tensor]:
        """Decode one token, in the order of the paper: a_t, c_t, h_t, t_t, logits."""
        embedded, prepared = self.embedding(tokens), state["memory"]
        query = state["cells"][-1][0]
        context, alignments, progress = self._attend_once(query, prepared, self._progress(state))
        cells, hidden = self._advance(self._loop_inputs(embedded), state["cells"], context)
        new_state = {"memory": prepared, "cells": cells, **progress}
        readout = self._readout(hidden, embedded, context)
        logits = self.output(readout, embedded, alignments[0], prepared)
        return logits, new_state, alignments[0]

    def _unroll(self, tokens: Tensor, memory: Memory, training: bool) -> tuple[Tensor, Alignments]:
        """Run ``step`` for all tokens; see ``unroll``.

        All tokens are known, so embeddings, readouts and logits of all steps are one product each,
        and only attention and recurrence run in the loop. ``test_steps_equal_unroll`` compares
        both (`tests/models/decoders/test_recurrent.py`).
        """
        state = self._start_unroll(memory, training)
        prepared = state["memory"]
        embedded, masks = self._embed(tokens, training)

        def step(carry: tuple[Any, Any, Any], inputs: list[Tensor]) -> tuple[Any, Any, Any]:
            cells, progress, _ = carry
            query = cells[-1][0]
            context, alignments, progress = self._attend_once(query, prepared, progress, training)
            cells, hidden = self._advance(inputs, cells, context)
            return cells, progress, (hidden, context, alignments)

        hidden = ops.zeros_like(state["cells"][-1][0])
        context = ops.zeros((ops.shape(hidden)[0], self.context_depth), hidden.dtype)
        outputs = (hidden, context, self._zero_alignments(prepared, hidden.dtype))
        start = (state["cells"], self._progress(state), outputs)
        _, (_, _, outputs) = scan_steps(step, start, self._loop_inputs(embedded, masks))
        hidden, context, alignments = outputs
        readout = batch_first(self._readout(hidden, embedded, context))
        readout = self.dropout(readout, training=training)
        alignments = tuple(batch_first(x) for x in alignments)
        return self.output(readout, batch_first(embedded), alignments[0], prepared), alignments

    def _readout(self, hidden: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        """Return the readout ``[..., units]``, of all steps in one product."""
        readout = self.readout(ops.concatenate([hidden, embedded, context], axis=-1))
        if self.maxout_pieces == 1:
            return readout
        shape = (*ops.shape(readout)[:-1], self.units, self.maxout_pieces)
        return ops.max(ops.reshape(readout, shape), axis=-1)
