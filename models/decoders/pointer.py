"""The decoder that points: its next piece is one of the inputs, or the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from models.attention.alignments.base import MASKED
from models.attention.pointer import Pointer
from models.decoders.base import Decoder
from models.layers.bridge import Bridge
from models.layers.cells import CELLS
from models.layers.dropouts import Dropout, drawn
from models.layers.loops import rows_first, scan_steps
from models.serialization import by_name, register
from models.vocabulary import BOS, EOS

# The id of the first input; those before it are the special pieces, EOS the last of them.
FIRST = EOS + 1
VISITS = ("all", "once", "any")


@register
class PointerDecoder(Decoder):
    """A stack of recurrent layers whose answer is a sequence of positions of the memory.

    Vinyals et al. 2015, "Pointer Networks", §2.3: h_t = RNN(x_{t-1}, h_{t-1}), p(C_t) =
    softmax(score(h_t, memory)), where x_{t-1} is the memory's vector of the input that was chosen
    last, and a learned one at first. The end is a learned key beside the memory's. With a glimpse
    the query is not h_t but tanh(W [g_t; h_t]), where g_t is the sum of what could be chosen,
    weighted by another pointer (Vinyals et al. 2016, "Order Matters: Sequence to Sequence for
    Sets", §4; Bello et al. 2017, "Neural Combinatorial Optimization with Reinforcement
    Learning", §A.1).

    The language is every decoder's: ids from ``FIRST`` on are the inputs, in their order, and
    EOS is the end. So there are four pieces more than inputs, and their number is known at run
    time alone. The first states are a ``Bridge`` from the memory.

    Args:
        memory_depth: the depth of the memory's values.
        final_depth: the depth of the encoder's final states; 0 where it gives none.
        dropout: the share dropped between layers and of the last one's output.
        cell: a name in ``CELLS``.
        units: the size of a state, and of the queries.
        layers: the number of layers.
        score: that of the pointer and of the glimpse, as in ``Pointer``.
        glimpse: whether it looks at what can be chosen before it points.
        clip: the greatest logit, as in ``Pointer``.
        visits: ``all``: every input exactly once, then the end; ``once``: each at most once, and
            the end at any time after the first; ``any``: that, and inputs may come again.

    Raises:
        ValueError: there is no such cell, score or kind of visits, no layer, or the clip is not
            above 0; when built, the score refuses the depths.
    """

    def __init__(
        self,
        memory_depth: int,
        final_depth: int = 0,
        dropout: float = 0.0,
        cell: str = "lstm",
        units: int = 128,
        layers: int = 1,
        score: str | dict[str, Any] = "additive",
        glimpse: bool = False,
        clip: float | None = None,
        visits: str = "all",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if visits not in VISITS:
            raise ValueError(f"Unknown visits {visits!r}. Choices: {', '.join(VISITS)}.")
        if layers < 1:
            raise ValueError(f"A pointer decoder has at least one layer, not {layers}.")
        self.settings: dict[str, Any] = {
            "memory_depth": memory_depth,
            "final_depth": final_depth,
            "dropout": dropout,
            "cell": cell,
            "units": units,
            "layers": layers,
            "score": score,
            "glimpse": glimpse,
            "clip": clip,
            "visits": visits,
        }
        self.units, self.visits = units, visits
        policy = self.dtype_policy
        make = by_name("cell", CELLS, cell)
        self.cells = [make(units, dtype=policy, name=f"layer_{i}") for i in range(layers)]
        self.bridge = Bridge(
            self.cells[0].state_names,
            units,
            layers,
            memory_depth,
            final_depth,
            dtype=policy,
            name="bridge",
        )
        self.glimpse: Any = None
        self.combine: Any = None
        if glimpse:
            self.glimpse = Pointer(score, dtype=policy, name="glimpse")
            self.combine = keras.layers.Dense(
                units, activation="tanh", use_bias=False, dtype=policy, name="combine"
            )
        self.pointer = Pointer(score, clip, dtype=policy, name="pointer")
        self.dropout = Dropout(dropout, dtype=policy)

    def build(self, tokens_shape: Any = None) -> None:
        depth = self.settings["memory_depth"]
        # What stands for the beginning and the end among the memory's values.
        self.first, self.last = (
            self.add_weight(name=name, shape=(1, depth), initializer="glorot_uniform")
            for name in ("first", "last")
        )
        for i, cell in enumerate(self.cells):
            cell.build((None, self.units if i else depth))
        self.bridge.build()
        shapes = (None, None, self.units), (None, None, depth)
        if self.glimpse is not None:
            self.glimpse.build(*shapes)
            self.combine.build((None, None, depth + self.units))
        self.pointer.build(*shapes)
        self.built = True

    def start(self, memory: dict[str, Any], longest: Any = None) -> dict[str, Any]:
        return {
            "memory": self._see(memory),
            "cells": self.bridge(memory),
            "visited": ops.zeros_like(memory["mask"]),
        }

    def step(self, tokens: Any, state: dict[str, Any]) -> tuple[Any, dict[str, Any], Any]:
        seen = state["memory"]
        batch = ops.shape(seen["mask"])[0]
        # The hypotheses of a row stand side by side as queries to the row's one memory.
        chosen = ops.reshape(tokens, (batch, -1))
        now = _flat(_take(seen["inputs"], chosen))
        cells, hidden = self._advance([now], state["cells"])
        visited = ops.logical_or(state["visited"], _flat(_named(chosen, seen["mask"])))
        logits, alignment = self._point(
            ops.reshape(hidden, (batch, -1, self.units)),
            seen,
            ops.reshape(visited, (batch, -1, ops.shape(visited)[-1])),
        )
        return _flat(logits), {"memory": seen, "cells": cells, "visited": visited}, _flat(alignment)

    def unroll(
        self, tokens: Any, memory: dict[str, Any], training: bool = False
    ) -> tuple[Any, Any]:
        state = self.start(memory)
        seen, rows = state["memory"], ops.shape(tokens)
        masks: list[Any] = []
        if training and self.settings["dropout"]:
            shape = (rows[1], rows[0], self.units)
            masks = [drawn(self.dropout, shape, self.compute_dtype) for _ in self.cells[1:]]

        def step(carry: tuple[Any, Any], now: list[Any]) -> tuple[Any, Any]:
            new = self._advance(now, carry[0])
            return new, new

        # Where it points is not fed back, so all steps point at once.
        start = (state["cells"], ops.zeros_like(state["cells"][0][0]))
        inputs = rows_first(_take(seen["inputs"], tokens))
        _, (_, hidden) = scan_steps(step, start, [inputs, *masks])
        named = ops.cast(_named(tokens, seen["mask"]), "int32")
        return self._point(rows_first(hidden), seen, ops.cumsum(named, axis=1) > 0, training)

    def _see(self, memory: dict[str, Any]) -> dict[str, Any]:
        """The memory as every step needs it, computed once a row; the end stands before it."""
        values, mask = memory["values"], memory["mask"]
        first, last = (
            ops.broadcast_to(ops.cast(one, values.dtype)[None], ops.shape(values[:, :1]))
            for one in (self.first, self.last)
        )
        known = ops.concatenate([last, values], axis=1)
        every = ops.concatenate([ops.ones_like(mask[:, :1]), mask], axis=1)
        seen = {
            "mask": mask,
            "inputs": self.cells[0].project(ops.concatenate([first, known], axis=1)),
            "pointer": self.pointer.prepare(known, every),
        }
        if self.glimpse is not None:
            seen["glimpse"] = {**self.glimpse.prepare(known, every), "values": known}
        return seen

    def _advance(self, now: Sequence[Any], states: Any) -> tuple[list[tuple[Any, ...]], Any]:
        """All layers by one step: their states, and the output of the last ``[rows, units]``."""
        projected, *masks = now
        new: list[tuple[Any, ...]] = []
        for i, (cell, state) in enumerate(zip(self.cells, states, strict=True)):
            if i:
                output = new[-1][0] * masks[i - 1] if masks else new[-1][0]
                projected = cell.project(output)
            new.append(cell.advance(projected, state))
        return new, new[-1][0]

    def _point(
        self, hidden: Any, seen: dict[str, Any], visited: Any, training: bool = False
    ) -> tuple[Any, Any]:
        """Logits ``[batch, target, 4 + source]`` and probabilities ``[batch, target, source]``.

        Args:
            hidden: ``[batch, target, units]``.
            seen: what ``_see`` gave.
            visited: the inputs that have been chosen before, ``[batch, target, source]``.
            training: whether dropout is on.
        """
        choices = self._choices(visited, seen["mask"][:, None])
        query = self.dropout(hidden, training=training)
        if self.glimpse is not None:
            looked = seen["glimpse"]
            weights = self.glimpse.probabilities(query, looked, choices)
            context = ops.matmul(ops.cast(weights, query.dtype), looked["values"])
            query = self.combine(ops.concatenate([context, query], axis=-1))
        logits = self.pointer.logits(query, seen["pointer"], choices)
        # PAD, UNK and BOS are nothing to point at.
        before = ops.full_like(ops.repeat(logits[..., :1], EOS, axis=-1), MASKED)
        return ops.concatenate([before, logits], axis=-1), ops.softmax(logits, axis=-1)[..., 1:]

    def _choices(self, visited: Any, real: Any) -> Any:
        """What may come next, ``[batch, target, 1 + source]``: the end, then the inputs."""
        left = ops.logical_and(real, ops.logical_not(visited))
        ends = ops.logical_not(ops.any(left, axis=-1, keepdims=True))
        if self.visits != "all":
            ends = ops.logical_or(ends, ops.any(visited, axis=-1, keepdims=True))
        if self.visits == "any":
            left = ops.logical_and(real, ops.ones_like(visited))
        return ops.concatenate([ends, left], axis=-1)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


def _take(vectors: Any, tokens: Any) -> Any:
    """The vectors of tokens ``[batch, n]``; ``vectors`` begin with those of BOS and EOS."""
    batch, count, depth = ops.shape(vectors)
    rows = ops.arange(batch, dtype="int32")[:, None] * count
    rows = rows + ops.maximum(ops.cast(tokens, "int32") - BOS, 0)
    return ops.take(ops.reshape(vectors, (-1, depth)), rows, axis=0)


def _named(tokens: Any, mask: Any) -> Any:
    """Which input each of the tokens ``[batch, n]`` is, as ``[batch, n, source]``."""
    here = ops.arange(ops.shape(mask)[-1], dtype="int32") + FIRST
    return ops.equal(ops.cast(tokens, "int32")[..., None], here)


def _flat(x: Any) -> Any:
    """``[batch, hypotheses, depth]`` → ``[batch * hypotheses, depth]``."""
    return ops.reshape(x, (-1, ops.shape(x)[-1]))
