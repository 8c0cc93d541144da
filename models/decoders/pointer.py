"""The pointer decoder: the next token is one of the inputs, or the end."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from regard.models.attention.alignments.base import MASKED
from regard.models.attention.pointer import Pointer
from regard.models.decoders.base import Decoder, flatten_rows
from regard.models.layers.bridge import Bridge
from regard.models.layers.cells import create_cells
from regard.models.layers.dropout import Dropout, dropout_mask
from regard.models.layers.loops import batch_first, scan_steps
from regard.models.serialization import check_name, constructor_arguments, register
from regard.models.tensors import Memory, State, Tensor
from regard.models.vocabulary import BOS, EOS, FIRST_POSITION

VISITS = ("all", "once", "any")


@register
class PointerDecoder(Decoder):
    """A stack of recurrent layers whose output is a sequence of positions of the memory.

    Vinyals et al. 2015, "Pointer Networks", §2.3: h_t = RNN(x_{t-1}, h_{t-1}), p(C_t) =
    softmax(score(h_t, memory)), where x_{t-1} is the memory's vector of the last chosen input, and
    at first a learned vector. The end is a learned key in addition to the memory's keys. With a
    glimpse the query is tanh(W [g_t; h_t]) instead of h_t, where g_t is the mean of the allowed
    inputs weighted by another pointer (Vinyals et al. 2016, "Order Matters: Sequence to Sequence
    for Sets", §4; Bello et al. 2017, "Neural Combinatorial Optimization with Reinforcement
    Learning", §A.1).

    Tokens are those of every decoder: ids from ``FIRST_POSITION`` on are the inputs in their order,
    and EOS is the end. The size of the vocabulary is the number of inputs plus four and known only
    at run time. A ``Bridge`` computes the initial states from the memory.

    Args:
        memory_depth: the depth of the memory's values.
        final_depth: the depth of the encoder's final states; 0 if there are none.
        dropout: the dropout rate between layers and of the output of the last layer.
        cell: a name in ``CELLS``.
        units: the size of a state and of the queries.
        layers: the number of layers.
        score: the score of the pointer and of the glimpse, as in ``Pointer``.
        glimpse: whether to attend to the allowed inputs before pointing.
        clip: the maximum logit, as in ``Pointer``.
        visits: ``all``: every input exactly once, then the end; ``once``: each input at most once,
            and the end at any time after the first input; ``any``: like ``once``, but inputs may
            be repeated.

    Raises:
        ValueError: the cell, score or visits are unknown, or ``clip`` is not above 0; or, in
            ``build``, the score does not support the depths.
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
        self.settings = constructor_arguments(locals())
        check_name("visits", VISITS, visits)
        self.units, self.visits = units, visits
        policy = self.dtype_policy
        self.cells = create_cells(cell, units, layers, dtype=policy)
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
        # The vectors of BOS and EOS among the memory's values.
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

    def start(self, memory: Memory, max_length: Tensor = None, hypotheses: int = 1) -> State:
        return {
            "memory": self._prepare(memory),
            "cells": self.bridge(memory),
            "visited": ops.zeros_like(memory["mask"]),
        }

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State, Tensor]:
        prepared = state["memory"]
        batch = ops.shape(prepared["mask"])[0]
        # The hypotheses of a row are several queries to the row's one memory.
        tokens = ops.reshape(tokens, (batch, -1))
        inputs = flatten_rows(_take_vectors(prepared["inputs"], tokens))
        cells, hidden = self._advance([inputs], state["cells"])
        chosen = flatten_rows(_one_hot_inputs(tokens, prepared["mask"]))
        visited = ops.logical_or(state["visited"], chosen)
        logits, alignment = self._point(
            ops.reshape(hidden, (batch, -1, self.units)),
            prepared,
            ops.reshape(visited, (batch, -1, ops.shape(visited)[-1])),
        )
        new_state = {"memory": prepared, "cells": cells, "visited": visited}
        return flatten_rows(logits), new_state, flatten_rows(alignment)

    def unroll(
        self, tokens: Tensor, memory: Memory, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        state = self.start(memory)
        prepared, (batch, target) = state["memory"], ops.shape(tokens)
        masks: list[Tensor] = []
        if training and self.settings["dropout"]:
            shape = (target, batch, self.units)
            masks = [dropout_mask(self.dropout, shape, self.compute_dtype) for _ in self.cells[1:]]

        def step(carry: tuple[Any, Any], inputs: list[Tensor]) -> tuple[Any, Any]:
            cells, _ = carry
            return self._advance(inputs, cells)

        # The choice is not fed back, so all steps point at once.
        start = (state["cells"], ops.zeros_like(state["cells"][0][0]))
        inputs = batch_first(_take_vectors(prepared["inputs"], tokens))
        _, (_, hidden) = scan_steps(step, start, [inputs, *masks])
        chosen = ops.cast(_one_hot_inputs(tokens, prepared["mask"]), "int32")
        visited = ops.cumsum(chosen, axis=1) > 0
        return self._point(batch_first(hidden), prepared, visited, training)

    def _prepare(self, memory: Memory) -> State:
        """Project the memory once per row, with the end as its first position."""
        self.check_built()
        values, mask = memory["values"], memory["mask"]
        first, last = (
            ops.broadcast_to(ops.cast(vector, values.dtype)[None], ops.shape(values[:, :1]))
            for vector in (self.first, self.last)
        )
        choices = ops.concatenate([last, values], axis=1)
        choices_mask = ops.concatenate([ops.ones_like(mask[:, :1]), mask], axis=1)
        prepared = {
            "mask": mask,
            "inputs": self.cells[0].project(ops.concatenate([first, choices], axis=1)),
            "pointer": self.pointer.prepare(choices, choices_mask),
        }
        if self.glimpse is not None:
            glimpse = self.glimpse.prepare(choices, choices_mask)
            prepared["glimpse"] = {**glimpse, "values": choices}
        return prepared

    def _advance(
        self, inputs: Sequence[Tensor], states: Sequence[tuple[Tensor, ...]]
    ) -> tuple[list[tuple[Tensor, ...]], Tensor]:
        """Return the next states of all layers and the output ``[rows, units]`` of the last one."""
        projected, *masks = inputs
        new_states: list[tuple[Tensor, ...]] = []
        for i, (cell, state) in enumerate(zip(self.cells, states, strict=True)):
            if i:
                output = new_states[-1][0] * masks[i - 1] if masks else new_states[-1][0]
                projected = cell.project(output)
            new_states.append(cell.advance(projected, state))
        return new_states, new_states[-1][0]

    def _point(
        self, hidden: Tensor, prepared: State, visited: Tensor, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Return logits ``[batch, target, 4 + source]`` and probabilities of the inputs.

        Args:
            hidden: ``[batch, target, units]``.
            prepared: the result of ``_prepare``.
            visited: true for inputs that have been chosen before, ``[batch, target, source]``.
            training: whether dropout is on.
        """
        choices = self._choices(visited, prepared["mask"][:, None])
        query = self.dropout(hidden, training=training)
        if self.glimpse is not None:
            weights = self.glimpse.probabilities(query, prepared["glimpse"], choices)
            values = prepared["glimpse"]["values"]
            context = ops.matmul(ops.cast(weights, query.dtype), values)
            query = self.combine(ops.concatenate([context, query], axis=-1))
        logits = self.pointer.logits(query, prepared["pointer"], choices)
        # PAD, UNK and BOS cannot be chosen.
        special = ops.full_like(ops.repeat(logits[..., :1], EOS, axis=-1), MASKED)
        return ops.concatenate([special, logits], axis=-1), ops.softmax(logits, axis=-1)[..., 1:]

    def _choices(self, visited: Tensor, mask: Tensor) -> Tensor:
        """Return the allowed choices ``[batch, target, 1 + source]``: the end, then the inputs."""
        remaining = ops.logical_and(mask, ops.logical_not(visited))
        can_end = ops.logical_not(ops.any(remaining, axis=-1, keepdims=True))
        if self.visits != "all":
            can_end = ops.logical_or(can_end, ops.any(visited, axis=-1, keepdims=True))
        if self.visits == "any":
            remaining = ops.logical_and(mask, ops.ones_like(visited))
        return ops.concatenate([can_end, remaining], axis=-1)


def _take_vectors(vectors: Tensor, tokens: Tensor) -> Tensor:
    """Return the vectors of tokens ``[batch, n]``; the first vectors are those of BOS and EOS."""
    batch, count, depth = ops.shape(vectors)
    rows = ops.arange(batch, dtype="int32")[:, None] * count
    rows = rows + ops.maximum(ops.cast(tokens, "int32") - BOS, 0)
    return ops.take(ops.reshape(vectors, (-1, depth)), rows, axis=0)


def _one_hot_inputs(tokens: Tensor, mask: Tensor) -> Tensor:
    """Return which input each of the tokens ``[batch, n]`` is, as ``[batch, n, source]``."""
    ids = ops.arange(ops.shape(mask)[-1], dtype="int32") + FIRST_POSITION
    return ops.equal(ops.cast(tokens, "int32")[..., None], ids)
