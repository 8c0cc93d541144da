"""The base class of the recurrent decoders."""

from collections.abc import Sequence
from typing import Any

from keras import ops

from regard.models.decoders.attending import Alignments, AttendingDecoder
from regard.models.decoders.base import flatten_rows
from regard.models.layers.bridge import Bridge
from regard.models.layers.cells import create_cells
from regard.models.layers.dropout import Dropout, dropout_mask
from regard.models.layers.embeddings import TokenEmbedding
from regard.models.serialization import check_name, constructor_arguments
from regard.models.tensors import Memory, State, Tensor


class RecurrentDecoder(AttendingDecoder):
    """Base class of the decoders that are a stack of recurrent layers.

    A ``Bridge`` computes the initial states from the encoder's final states. Without attention
    (Cho et al. 2014, §2.2) the context of every step is the encoder's final state of the top
    layer, or the mean of the memory if there are no final states, and alignments are zero.

    A subclass implements ``step``, one token in the order of its paper, and ``_unroll``, which does
    the same for all tokens of a target. `tests/models/decoders/test_recurrent.py` compares them
    (``test_steps_equal_unroll``), and the tests of each decoder with the paper in NumPy.

    Args:
        vocabulary: the size of the target vocabulary.
        memory_depth: the depth of the memory's values.
        final_depth: the depth of the encoder's final states; 0 if there are none.
        embedding: the depth of the embeddings.
        dropout: the dropout rate of the embeddings, between layers, and before the logits.
        attention: as in ``create_attention``. The alignment is the mean over the heads.
        tied: use the embedding matrix as output matrix.
        units: the size of a state and of the output layer's input.
        layers: the number of layers.
        cell: a name in ``CELLS``.
        residual: add a layer's input to its output if both have the same depth.
        pointer_generator: mix in copies of source tokens (``Copying``). Needs attention and one
            vocabulary for both sides.
        initial_state: ``encoder`` for initial states from the encoder, or ``zeros``.
        scale: multiply the embeddings by the square root of their depth, as ``RecurrentEncoder``.
        extra: the depth of the additional input of the first layer at each step.

    Raises:
        ValueError: the cell or attention is unknown; the embeddings are tied and do
            not have the depth ``units``; ``heads`` does not divide ``memory_depth``, or comes with
            a stochastic alignment; or ``pointer_generator`` without attention.
    """

    def __init__(
        self,
        vocabulary: int,
        memory_depth: int,
        final_depth: int,
        embedding: int = 256,
        dropout: float = 0.0,
        attention: dict[str, Any] | None = None,
        tied: bool = False,
        units: int = 256,
        layers: int = 1,
        cell: str = "lstm",
        residual: bool = False,
        pointer_generator: bool = False,
        initial_state: str = "encoder",
        scale: bool = True,
        *,
        extra: int,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        attention = None if attention is None else dict(attention)
        self.settings = constructor_arguments(locals(), exclude=("extra",))
        policy = self.dtype_policy
        self.units = units
        self.embedding = TokenEmbedding(
            vocabulary, embedding, dropout, scale, dtype=policy, name="embedding"
        )
        check_name("initial_state", ("encoder", "zeros"), initial_state)
        self.cells = create_cells(cell, units, layers, extra, dtype=policy)
        # Whether each layer's input is added to its output.
        self.residuals = [residual and (i > 0 or embedding == units) for i in range(layers)]
        self.create_attention(memory_depth, attention, pointer_generator)
        self.bridge = Bridge(
            self.cells[0].state_names,
            units,
            layers,
            memory_depth,
            final_depth,
            zeros=initial_state == "zeros",
            dtype=policy,
            name="bridge",
        )
        self.layer_dropout = Dropout(dropout, dtype=policy)
        self.dropout = Dropout(dropout, dtype=policy)
        self.create_output(vocabulary, units, tied, pointer_generator)

    def build(self, tokens_shape: Any = None) -> None:
        memory_depth = self.settings["memory_depth"]
        depth = self.settings["embedding"]
        for cell in self.cells:
            cell.build((None, depth))
            depth = self.units
        if self.attention is not None:
            self.attention.build((None, None, self.units), (None, None, memory_depth))
        self.bridge.build()
        self.build_output(self.units)
        self.built = True

    def fixed_context(self, memory: Memory) -> Tensor:
        return self.bridge.summary(memory)[0][:, -self.settings["memory_depth"] :]

    def start(self, memory: Memory, max_length: Tensor = None, hypotheses: int = 1) -> State:
        prepared, cells = self.prepare(memory), self.bridge(memory)
        position = ops.cast(ops.zeros_like(cells[0][0][:, 0]), "int32")
        state = {"memory": prepared, "cells": cells, "position": position}
        if self.covers:
            state["coverage"] = ops.cast(ops.zeros_like(prepared["mask"]), "float32")
        return state

    def _start_unroll(self, memory: Memory, training: bool) -> State:
        """Return the state before the first token, with the random key that a loop needs."""
        state = self.start(memory)
        if training and self.attention is not None:
            state["memory"] = self.attention.alignment.with_random_key(state["memory"])
        return state

    def _zero_alignments(self, prepared: State, dtype: Any) -> Alignments:
        """Return zeros of the shapes of one step's alignments, to start a loop with."""
        zeros = ops.cast(ops.zeros_like(prepared["mask"]), dtype)  # [batch, source]
        return (zeros, ops.cast(zeros, "float32")) if self.stochastic else (zeros,)

    def _attend_once(
        self, query: Tensor, prepared: State, progress: State, training: bool = False
    ) -> tuple[Tensor, Alignments, State]:
        """Run ``_attend`` for one query per hypothesis; all tensors are ``[rows, ...]``.

        This is c, a = attend(q), and what attention knows of the steps before it: their number and,
        for a score with coverage, the sum of their weights. ``progress`` is the result of
        ``_progress`` or of the previous step, and the last output is that after this step.
        """
        batch = ops.shape(prepared["mask"])[0]
        # The hypotheses of a row are several queries to the row's one memory.
        query = ops.reshape(query, (batch, -1, self.units))
        position = ops.reshape(progress["position"], (batch, -1))
        following = {"position": progress["position"] + 1}
        if self.covers:
            coverage = progress["coverage"]
            shape = (batch, -1, ops.shape(coverage)[-1])
            prepared = {**prepared, "coverage": ops.reshape(coverage, shape)}
        context, alignments = self._attend(query, prepared, position, training)
        alignments = tuple(flatten_rows(x) for x in alignments)
        if self.covers:
            following["coverage"] = coverage + ops.cast(alignments[0], "float32")
        return flatten_rows(context), alignments, following

    @staticmethod
    def _progress(state: State) -> State:
        """Return the entries of a state that attention reads and changes."""
        return {name: state[name] for name in ("position", "coverage") if name in state}

    def _embed(self, tokens: Tensor, training: bool) -> tuple[Tensor, Sequence[Tensor]]:
        """Return embeddings and dropout masks of all steps, ``[target, batch, depth]``.

        There is one mask for the output of each layer but the last; none without dropout.
        """
        embedded = ops.transpose(self.embedding(tokens, training=training), (1, 0, 2))
        return embedded, self._dropout_masks(tokens, embedded.dtype, training)

    def _loop_inputs(self, embedded: Tensor, masks: Sequence[Tensor] = ()) -> tuple[Tensor, ...]:
        """Return the inputs of a loop over the steps, in the order that ``_advance`` expects.

        The cell of the first layer computes W x + U h. W x of all steps is one product before the
        loop, and only U h is computed in it. A residual connection also needs x.
        """
        inputs = [self.cells[0].project(embedded)]
        if self.residuals[0]:
            inputs.append(embedded)
        return (*inputs, *masks)

    def _advance(
        self,
        inputs: Sequence[Tensor],
        cells: Sequence[tuple[Tensor, ...]],
        extra: Tensor = None,
    ) -> tuple[list[tuple[Tensor, ...]], Tensor]:
        """Return the next states of all layers and the output ``[rows, units]`` of the last one.

        Layer i computes h_i = cell_i(x_i, h_i), and x_{i+1} = dropout(h_i), plus x_i with residual
        connections.

        Args:
            inputs: the result of ``_loop_inputs`` for one step.
            cells: the states of all layers.
            extra: the additional input of the first layer.
        """
        rest = iter(inputs)
        projected = next(rest)
        output = next(rest) if self.residuals[0] else None
        masks = list(rest)
        states: list[tuple[Tensor, ...]] = []
        for i, (cell, state) in enumerate(zip(self.cells, cells, strict=True)):
            if i:
                projected, extra = cell.project(output), None
            states.append(cell.advance(projected, state, extra))
            output = self._layer_output(i, states[-1][0], output, masks)
        return states, output

    def _layer_output(
        self, i: int, output: Tensor, layer_input: Tensor, masks: Sequence[Tensor]
    ) -> Tensor:
        """Return the output of layer ``i`` after dropout and the residual connection."""
        if masks and i < len(self.cells) - 1:
            output = output * masks[i]
        return output + layer_input if self.residuals[i] else output

    def _dropout_masks(self, tokens: Tensor, dtype: Any, training: bool) -> Sequence[Tensor]:
        if not training or not self.settings["dropout"]:
            return ()
        batch, steps = ops.shape(tokens)
        shape = (steps, batch, self.units)
        return [dropout_mask(self.layer_dropout, shape, dtype) for _ in self.cells[1:]]
