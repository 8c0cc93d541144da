"""The decoder on Bahdanau's path: h_{t-1} → alignment → context → h_t."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.decoders.recurrent import RecurrentDecoder
from models.layers.loops import rows_first, scan_steps
from models.serialization import register

READOUTS = ("maxout", "tanh")


@register
class BahdanauDecoder(RecurrentDecoder):
    """A stack of recurrent layers that looks at the memory before every step.

    Bahdanau et al. 2015, §3.1 and §A.2.2: a_t = align(score(h_{t-1}, memory)), c_t = Σ a_t memory,
    h_t = RNN([y_{t-1}; c_t], h_{t-1}), logits = W_o t_t, where the readout t_t is made of h_t,
    y_{t-1} and c_t (eq. 4 of §3.1; §A.2.2 takes h_{t-1}). The query is the state of the top layer;
    the context goes into the first.

    Args:
        vocabulary: the number of target pieces.
        memory_depth: the depth of the memory's values.
        final_depth: the depth of the encoder's final states; 0 where it gives none.
        units: the size of a state, and of the readout.
        readout: ``maxout``, the greater of each two of ``2 * units`` sums (Goodfellow et al.
            2013), or ``tanh`` of ``units`` sums.
        kwargs: as in ``RecurrentDecoder``.

    Raises:
        ValueError: there is no such readout.
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
        if readout not in READOUTS:
            raise ValueError(f"Unknown readout {readout!r}. Choices: {', '.join(READOUTS)}.")
        super().__init__(
            vocabulary, memory_depth, final_depth, units=units, extra=memory_depth, **kwargs
        )
        self.settings["readout"] = readout
        self.pieces = 2 if readout == "maxout" else 1
        self.readout = keras.layers.Dense(
            self.pieces * units,
            activation="tanh" if readout == "tanh" else None,
            dtype=self.dtype_policy,
            name="readout",
        )

    def build(self, tokens_shape: Any = None) -> None:
        depths = self.units + self.settings["embedding"] + self.settings["memory_depth"]
        self.readout.build((None, None, depths))
        super().build(tokens_shape)

    def step(self, tokens: Any, state: dict[str, Any]) -> tuple[Any, dict[str, Any], Any]:
        embedded, seen = self.embedding(tokens), state["memory"]
        context, looks = self._look_once(state["cells"][-1][0], seen, state["position"])
        cells, hidden = self._advance(self._scanned(embedded), state["cells"], context)
        new = {"memory": seen, "cells": cells, "position": state["position"] + 1}
        read = self._read(hidden, embedded, context)
        return self._written_once(read, embedded, looks[0], seen), new, looks[0]

    def _unroll(
        self, tokens: Any, memory: dict[str, Any], training: bool
    ) -> tuple[Any, tuple[Any, ...]]:
        state = self._begin(memory, training)
        seen = state["memory"]
        embedded, drops = self._inputs(tokens, training)
        lates = self._lates(training)

        def step(carry: tuple[Any, ...], now: list[Any]) -> tuple[Any, Any]:
            cells, _, _, position, _ = carry
            context, looks = self._look_once(cells[-1][0], seen, position, training)
            cells, hidden = self._advance(now, cells, context, drops, lates)
            new = (cells, hidden, context, position + 1, looks)
            return new, new

        hidden = state["cells"][-1][0]
        context = ops.zeros((ops.shape(hidden)[0], self.settings["memory_depth"]), hidden.dtype)
        looks = self._unlooked(seen, hidden.dtype)
        start = (state["cells"], hidden, context, state["position"], looks)
        _, found = scan_steps(step, start, self._scanned(embedded, drops, lates))
        cells, hidden, context, _, looks = found
        self._multiplied(lates, state["cells"], cells, context, embedded, drops)
        read = rows_first(self._read(hidden, embedded, context))
        read = self.dropout(read, training=training)
        looks = tuple(rows_first(look) for look in looks)
        return self._written(read, rows_first(embedded), looks[0], seen), looks

    def _read(self, hidden: Any, embedded: Any, context: Any) -> Any:
        """The readout: one product for all steps, since none comes back into the loop."""
        read = self.readout(ops.concatenate([hidden, embedded, context], axis=-1))
        if self.pieces == 1:
            return read
        pairs = ops.reshape(read, (*ops.shape(read)[:-1], self.units, self.pieces))
        return ops.max(pairs, axis=-1)
