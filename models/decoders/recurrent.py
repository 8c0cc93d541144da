"""The recurrent decoder, on Luong's path: h_t → alignment → context → attentional state."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from models.attention.attention import Attention
from models.decoders.base import Decoder
from models.layers.cells import CELLS
from models.layers.embeddings import TokenEmbedding
from models.layers.loops import scan_steps
from models.serialization import by_name, register

PATHS = ("luong",)


@register
class RecurrentDecoder(Decoder):
    """A stack of recurrent layers that looks at the memory at every step.

    Luong et al. 2015, §3: h_t = RNN(y_{t-1}, h_{t-1}), a_t = align(score(h_t, memory)),
    c_t = Σ a_t memory, h̃_t = tanh(W [c_t; h_t]), logits = W_s h̃_t. With input feeding (§3.3)
    h̃_{t-1} goes into the first layer beside the embedding.

    Args:
        vocabulary: the number of target pieces.
        memory_depth: the depth of the memory's values.
        final_depth: the depth of the encoder's final states, from which decoding starts.
        embedding: the depth of the embeddings.
        units: the size of a state, and of the attentional state.
        layers: the number of layers.
        cell: a name in ``CELLS``.
        path: the order of recurrence and attention, one of ``PATHS``.
        input_feeding: feed the attentional state into the next step.
        dropout: the share dropped between layers, and of the attentional state before the logits.
        attention: the arguments of ``Attention``.
    """

    def __init__(
        self,
        vocabulary: int,
        memory_depth: int,
        final_depth: int,
        embedding: int = 256,
        units: int = 256,
        layers: int = 1,
        cell: str = "lstm",
        path: str = "luong",
        input_feeding: bool = True,
        dropout: float = 0.0,
        attention: dict[str, Any] | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {
            "vocabulary": vocabulary,
            "memory_depth": memory_depth,
            "final_depth": final_depth,
            "embedding": embedding,
            "units": units,
            "layers": layers,
            "cell": cell,
            "path": path,
            "input_feeding": input_feeding,
            "dropout": dropout,
            "attention": dict(attention or {}),
        }
        if path not in PATHS:
            raise ValueError(f"Unknown path {path!r}. Choices: {', '.join(PATHS)}.")
        policy = self.dtype_policy
        self.units, self.input_feeding = units, input_feeding
        self.embedding = TokenEmbedding(
            vocabulary, embedding, dropout, dtype=policy, name="embedding"
        )
        make = by_name("cell", CELLS, cell)
        self.cells = [
            make(
                units,
                extra=units if input_feeding and i == 0 else 0,
                dtype=policy,
                name=f"layer_{i}",
            )
            for i in range(layers)
        ]
        self.attention = Attention(**(attention or {}), dtype=policy, name="attention")
        self.combine = keras.layers.Dense(
            units, activation="tanh", use_bias=False, dtype=policy, name="combine"
        )
        self.bridges = [
            keras.layers.Dense(
                layers * units, activation="tanh", dtype=policy, name=f"bridge_{name}"
            )
            for name in self.cells[0].state_names
        ]
        self.between = keras.layers.Dropout(dropout, dtype=policy)
        self.dropout = keras.layers.Dropout(dropout, dtype=policy)
        self.logits = keras.layers.Dense(vocabulary, dtype=policy, name="logits")

    def build(self, tokens_shape: Any = None) -> None:
        settings = self.settings
        memory_depth = settings["memory_depth"]
        self.embedding.build()
        depth = settings["embedding"]
        for cell in self.cells:
            cell.build((None, depth))
            depth = self.units
        self.attention.build((None, None, self.units), (None, None, memory_depth))
        self.combine.build((None, None, memory_depth + self.units))
        for bridge in self.bridges:
            bridge.build((None, settings["final_depth"]))
        self.logits.build((None, self.units))
        self.built = True

    def start(self, memory: dict[str, Any], longest: Any = None) -> dict[str, Any]:
        starts = [
            ops.split(bridge(final), len(self.cells), axis=-1)
            for bridge, final in zip(self.bridges, memory["final_states"], strict=True)
        ]
        state: dict[str, Any] = {
            "memory": self.attention.prepare(memory["values"], memory["mask"]),
            "cells": [tuple(parts) for parts in zip(*starts, strict=True)],
        }
        state["position"] = ops.cast(ops.zeros_like(state["cells"][0][0][:, 0]), "int32")
        if self.input_feeding:
            state["fed"] = ops.zeros_like(state["cells"][0][0])
        return state

    def step(self, tokens: Any, state: dict[str, Any]) -> tuple[Any, dict[str, Any], Any]:
        projected = self.cells[0].project(self.embedding(tokens))
        cells = self._advance(projected, state["cells"], state.get("fed"), None)
        batch = ops.shape(state["memory"]["mask"])[0]
        # The hypotheses of a row stand side by side as queries to the row's one memory.
        query = ops.reshape(cells[-1][0], (batch, -1, self.units))
        position = ops.reshape(state["position"], (batch, -1))
        attentional, alignment = self._look(query, state["memory"], position)
        attentional = ops.reshape(attentional, (-1, self.units))
        alignment = ops.reshape(alignment, (-1, ops.shape(alignment)[-1]))
        new = {"memory": state["memory"], "cells": cells, "position": state["position"] + 1}
        if self.input_feeding:
            new["fed"] = attentional
        return self.logits(attentional), new, alignment

    def unroll(
        self, tokens: Any, memory: dict[str, Any], training: bool = False
    ) -> tuple[Any, Any]:
        state = self.start(memory)
        embedded = ops.transpose(self.embedding(tokens, training=training), (1, 0, 2))
        projected = self.cells[0].project(embedded)  # [target, batch, 4 units]
        drop = self._between_masks(tokens, projected.dtype, training)
        unroll = self._unroll_fed if self.input_feeding else self._unroll_free
        attentional, alignments = unroll(projected, drop, state, training)
        return self.logits(self.dropout(attentional, training=training)), alignments

    def _unroll_fed(
        self, projected: Any, drop: Any, state: dict[str, Any], training: bool
    ) -> tuple[Any, Any]:
        """Recurrence and attention in one loop, since each step needs what the last one saw."""
        memory = state["memory"]
        unseen = ops.cast(ops.zeros_like(memory["mask"]), projected.dtype)  # [batch, source]

        def step(carry: tuple[Any, ...], now: list[Any]) -> tuple[Any, Any]:
            cells, fed, _, position = carry
            cells = self._advance(now[0], cells, fed, now[1:])
            query = cells[-1][0][:, None]
            fed, alignment = self._look(query, memory, position[:, None], training)
            new = (cells, fed[:, 0], alignment[:, 0], position + 1)
            return new, new

        start = (state["cells"], state["fed"], unseen, state["position"])
        _, (_, attentional, alignments, _) = scan_steps(step, start, (projected, *drop))
        return ops.transpose(attentional, (1, 0, 2)), ops.transpose(alignments, (1, 0, 2))

    def _unroll_free(
        self, projected: Any, drop: Any, state: dict[str, Any], training: bool
    ) -> tuple[Any, Any]:
        """The recurrence first, then attention for all steps at once."""

        def step(cells: Any, now: list[Any]) -> tuple[Any, Any]:
            new = self._advance(now[0], cells, None, now[1:])
            return new, new

        _, cells = scan_steps(step, state["cells"], (projected, *drop))
        query = ops.transpose(cells[-1][0], (1, 0, 2))
        return self._look(query, state["memory"], training=training)

    def _advance(self, projected: Any, cells: Any, fed: Any, drop: Any) -> list[tuple[Any, ...]]:
        """All layers by one step; ``drop`` has one mask a layer above the first, or is empty."""
        new = [self.cells[0].advance(projected, cells[0], fed)]
        for i in range(1, len(self.cells)):
            below = new[-1][0] * drop[i - 1] if drop else new[-1][0]
            new.append(self.cells[i].advance(self.cells[i].project(below), cells[i]))
        return new

    def _look(
        self, query: Any, prepared: dict[str, Any], position: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        context, alignment = self.attention.attend(query, prepared, position, training)
        return self.combine(ops.concatenate([context, query], axis=-1)), alignment

    def _between_masks(self, tokens: Any, dtype: Any, training: bool) -> tuple[Any, ...]:
        """Dropout masks between the layers for all steps, drawn outside of the loop."""
        if not training or not self.settings["dropout"]:
            return ()
        batch, target = ops.shape(tokens)[0], ops.shape(tokens)[1]
        ones = ops.ones((target, batch, self.units), dtype=dtype)
        return tuple(self.between(ones, training=True) for _ in self.cells[1:])

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
