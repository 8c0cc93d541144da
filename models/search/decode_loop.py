"""The loop of every search. It drops the rows of a batch that are finished."""

from collections.abc import Callable
from typing import Any, Protocol

import keras
from keras import ops

from regard.models.layers.loops import can_grow

# Finished rows are dropped when they are this share of all rows. 0.1 and 0.5 are as fast.
DROP_SHARE = 0.25


class SearchSteps(Protocol):
    """The steps of a search for some rows.

    ``rows`` is a structure of tensors with one entry per row; ``beams`` is one with an entry per
    row and hypothesis.
    """

    def unfinished(self, position: Any, rows: Any, beams: Any) -> Any:
        """Return which rows need more steps, ``[batch]``. A finished row stays finished."""

    def advance(self, position: Any, rows: Any, beams: Any) -> tuple[Any, Any]:
        """Take one step for all rows. Finished rows must not change."""


def decode_loop(
    create_steps: Callable[[Any], SearchSteps],
    inputs: Any,
    rows: Any,
    beams: Any,
    beam_width: int,
    result: Callable[[Any, Any], Any],
) -> Any:
    """Take steps until all rows are finished.

    On a backend whose loops allow changing shapes, finished rows are dropped from the batch, so
    that a batch costs the sum of its rows and not its longest row times its size.

    Args:
        create_steps: creates the steps for the inputs of some rows.
        inputs: constant tensors ``[batch, ...]``, or ``[1, ...]`` for values that all rows share.
        rows: the changing tensors, ``[batch, ...]``.
        beams: the changing tensors of the hypotheses, ``[batch * beam_width, ...]``.
        beam_width: the number of hypotheses per row.
        result: returns the wanted tensors ``[batch, ...]`` from rows and beams.

    Returns:
        ``result`` of all rows, in their order.
    """
    state, first = (inputs, rows, beams), ops.convert_to_tensor(0, dtype="int32")
    if not can_grow():
        steps = create_steps(inputs)
        _, *final = ops.while_loop(
            lambda *now: ops.any(steps.unfinished(*now)), _next_step(steps), (first, rows, beams)
        )
        return result(*final)

    def has_rows(position: Any, numbers: Any, state: Any, results: Any) -> Any:
        return ops.shape(numbers)[0] > 0

    def decode_and_drop(position: Any, numbers: Any, state: Any, results: Any) -> Any:
        inputs, rows, beams = state
        steps = create_steps(inputs)
        min_active = ops.cast(ops.shape(numbers)[0], "float32") * (1 - DROP_SHARE)

        def has_enough_active_rows(*now: Any) -> Any:
            return ops.sum(ops.cast(steps.unfinished(*now), "float32")) > min_active

        position, rows, beams = ops.while_loop(
            has_enough_active_rows, _next_step(steps), (position, rows, beams)
        )
        results = keras.tree.map_structure(
            lambda every, new: ops.scatter_update(every, numbers[:, None], new),
            results,
            result(rows, beams),
        )
        active = _indices(steps.unfinished(position, rows, beams))
        state = _take_state((inputs, rows, beams), active, beam_width)
        return position, ops.take(numbers, active, axis=0), state, results

    results = result(rows, beams)
    numbers = ops.arange(ops.shape(keras.tree.flatten(results)[0])[0], dtype="int32")
    if any(x.shape[0] is not None for x in keras.tree.flatten((rows, beams))):
        # A graph would take a static batch size for the size after every iteration.
        numbers = _indices(numbers >= 0)
        state = _take_state(state, numbers, beam_width)
    return ops.while_loop(has_rows, decode_and_drop, (first, numbers, state, results))[-1]


def take_rows(state: Any, indices: Any) -> Any:
    """Select entries along the first axis of all tensors of a structure."""
    return keras.tree.map_structure(lambda x: ops.take(x, indices, axis=0), state)


def _next_step(steps: SearchSteps) -> Callable[..., Any]:
    return lambda position, *now: (position + 1, *steps.advance(position, *now))


def _indices(condition: Any) -> Any:
    return ops.cast(ops.nonzero(condition)[0], "int32")


def _take_state(state: tuple[Any, Any, Any], indices: Any, beam_width: int) -> tuple[Any, Any, Any]:
    """Select the inputs, rows and beams of some rows."""
    offsets = ops.arange(beam_width, dtype="int32")
    beam_indices = ops.reshape(indices[:, None] * beam_width + offsets, (-1,))
    inputs, rows, beams = state
    inputs = keras.tree.map_structure(
        lambda x: x if x.shape[0] == 1 else ops.take(x, indices, axis=0), inputs
    )
    return inputs, take_rows(rows, indices), take_rows(beams, beam_indices)
