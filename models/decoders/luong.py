"""The decoder on Luong's path: h_t → alignment → context → attentional state."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.decoders.recurrent import RecurrentDecoder
from models.layers.dropouts import Drops
from models.layers.late import before
from models.layers.loops import rows_first, scan_steps
from models.serialization import register


@register
class LuongDecoder(RecurrentDecoder):
    """A stack of recurrent layers that looks at the memory after every step.

    Luong et al. 2015, §3: h_t = RNN(y_{t-1}, h_{t-1}), a_t = align(score(h_t, memory)),
    c_t = Σ a_t memory, h̃_t = tanh(W [c_t; h_t]), logits = W_s h̃_t. With input feeding (§3.3)
    h̃_{t-1} goes into the first layer beside the embedding.

    Args:
        vocabulary: the number of target pieces.
        memory_depth: the depth of the memory's values.
        final_depth: the depth of the encoder's final states; 0 where it gives none.
        units: the size of a state, and of the attentional state.
        input_feeding: feed the attentional state into the next step.
        kwargs: as in ``RecurrentDecoder``.
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
        self.combine.build((None, None, self.settings["memory_depth"] + self.units))
        super().build(tokens_shape)

    def start(
        self, memory: dict[str, Any], longest: Any = None, hypotheses: int = 1
    ) -> dict[str, Any]:
        state = super().start(memory, longest, hypotheses)
        # W [c; h] = Σ a (W_c memory) + W_h h: what meets the memory does so once a sentence.
        seen, name = state["memory"], "context" if self.attention is None else "values"
        values = ops.cast(seen[name], self.compute_dtype)
        seen[name] = ops.matmul(values, ops.cast(self._combining()[0], self.compute_dtype))
        if self.input_feeding:
            state["fed"] = ops.zeros_like(state["cells"][0][0])
        return state

    def step(self, tokens: Any, state: dict[str, Any]) -> tuple[Any, dict[str, Any], Any]:
        embedded = self.embedding(tokens)
        now = self._scanned(embedded)
        cells, hidden = self._advance(now, state["cells"], state.get("fed"))
        context, looks = self._look_once(hidden, state["memory"], state["position"])
        attentional = self._attentional(context, hidden, self._combining()[1])
        new = {"memory": state["memory"], "cells": cells, "position": state["position"] + 1}
        if self.input_feeding:
            new["fed"] = attentional
        logits = self._written_once(attentional, embedded, looks[0], state["memory"])
        return logits, new, looks[0]

    def _unroll(
        self, tokens: Any, memory: dict[str, Any], training: bool
    ) -> tuple[Any, tuple[Any, ...]]:
        state = self._begin(memory, training)
        embedded, drops = self._inputs(tokens, training)
        unroll = self._unroll_fed if self.input_feeding else self._unroll_free
        attentional, looks = unroll(embedded, drops, state, training)
        attentional = self.dropout(attentional, training=training)
        return self._written(attentional, rows_first(embedded), looks[0], state["memory"]), looks

    def _unroll_fed(
        self, embedded: Any, drops: Drops, state: dict[str, Any], training: bool
    ) -> tuple[Any, tuple[Any, ...]]:
        """Recurrence and attention in one loop, since each step needs what the last one saw."""
        seen, lates = state["memory"], self._lates(training)
        ours = self._combining()[1]  # cut outside of the loop, where its gradient is cheap

        def step(carry: tuple[Any, ...], now: list[Any]) -> tuple[Any, Any]:
            cells, fed, position, _ = carry
            cells, hidden = self._advance(now, cells, fed, drops, lates)
            context, looks = self._look_once(hidden, seen, position, training)
            new = (cells, self._attentional(context, hidden, ours), position + 1, looks)
            return new, new

        looks = self._unlooked(seen, state["fed"].dtype)
        start = (state["cells"], state["fed"], state["position"], looks)
        scanned = self._scanned(embedded, drops, lates)
        _, (cells, attentional, _, looks) = scan_steps(step, start, scanned)
        fed = before(state["fed"], attentional)
        self._multiplied(lates, state["cells"], cells, fed, embedded, drops)
        return rows_first(attentional), tuple(rows_first(look) for look in looks)

    def _unroll_free(
        self, embedded: Any, drops: Drops, state: dict[str, Any], training: bool
    ) -> tuple[Any, tuple[Any, ...]]:
        """The recurrence first, then attention for all steps at once."""
        lates = self._lates(training)

        def step(carry: tuple[Any, ...], now: list[Any]) -> tuple[Any, Any]:
            new = self._advance(now, carry[0], None, drops, lates)
            return new, new

        start = (state["cells"], ops.zeros_like(state["cells"][0][0]))
        _, (cells, hidden) = scan_steps(step, start, self._scanned(embedded, drops, lates))
        self._multiplied(lates, state["cells"], cells, None, embedded, drops)
        hidden = rows_first(hidden)
        context, looks = self._look(hidden, state["memory"], training=training)
        return self._attentional(context, hidden, self._combining()[1]), looks

    def _attentional(self, context: Any, hidden: Any, ours: Any) -> Any:
        """tanh(W [c; h]) of a context that W has met already."""
        return ops.tanh(context + ops.matmul(hidden, ops.cast(ours, self.compute_dtype)))

    def _combining(self) -> Any:
        """W in two: what meets the context, and what meets the hidden state."""
        return ops.split(self.combine.kernel, [self.settings["memory_depth"]])
