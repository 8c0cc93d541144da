"""The steps of a search, for those rows of a batch that are not done yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import keras
from keras import ops

from models.layers.growth import can_grow

# Rows that are done are left behind when they are so many of all. A tenth or a half is as fast.
DONE = 0.25


class Steps(Protocol):
    """How a search goes on with some rows.

    ``rows`` and ``prefixes`` are structures of tensors, the former with a row for each of these
    rows, the latter with as many for each as the search has prefixes.
    """

    def unfinished(self, position: Any, rows: Any, prefixes: Any) -> Any:
        """Which rows have steps to take, ``[batch]``; those that have none never have again."""

    def advance(self, position: Any, rows: Any, prefixes: Any) -> tuple[Any, Any]:
        """One step of all rows, which changes nothing of those that have none to take."""


def walk(
    begin: Callable[[Any], Steps],
    told: Any,
    rows: Any,
    prefixes: Any,
    size: int,
    result: Callable[[Any, Any], Any],
) -> Any:
    """Takes steps until all rows are done.

    Where shapes may change in a loop, rows that are done are left behind when there are enough of
    them, so that a batch costs what its rows cost and not what its last row costs for all.

    Args:
        begin: from what the rows are told to their steps.
        told: what never changes, a structure of tensors ``[batch, ...]``, or ``[1, ...]`` of what
            is the same for all.
        rows: what changes, ``[batch, ...]``.
        prefixes: the same, ``[batch * size, ...]``.
        size: how many prefixes a row has.
        result: from rows and prefixes to what is wanted in the end, tensors ``[batch, ...]``.

    Returns:
        ``result``'s for all rows, in their order.
    """
    state, first = (told, rows, prefixes), ops.convert_to_tensor(0, dtype="int32")
    if not can_grow():
        steps = begin(told)
        _, *found = ops.while_loop(
            lambda *now: ops.any(steps.unfinished(*now)), _one_more(steps), (first, rows, prefixes)
        )
        return result(*found)

    def left(position: Any, numbers: Any, state: Any, results: Any) -> Any:
        return ops.shape(numbers)[0] > 0

    def go_on(position: Any, numbers: Any, state: Any, results: Any) -> Any:
        told, rows, prefixes = state
        steps = begin(told)
        most = ops.cast(ops.shape(numbers)[0], "float32") * (1 - DONE)

        def enough(*now: Any) -> Any:
            return ops.sum(ops.cast(steps.unfinished(*now), "float32")) > most

        position, rows, prefixes = ops.while_loop(
            enough, _one_more(steps), (position, rows, prefixes)
        )
        results = keras.tree.map_structure(
            lambda every, new: ops.scatter_update(every, numbers[:, None], new),
            results,
            result(rows, prefixes),
        )
        there = _numbers(steps.unfinished(position, rows, prefixes))
        state = _select((told, rows, prefixes), there, size)
        return position, ops.take(numbers, there, axis=0), state, results

    results = result(rows, prefixes)
    numbers = ops.arange(ops.shape(keras.tree.flatten(results)[0])[0], dtype="int32")
    if any(x.shape[0] is not None for x in keras.tree.flatten((rows, prefixes))):
        # A graph takes a number of rows that it knows for the number after every step.
        numbers = _numbers(numbers >= 0)
        state = _select(state, numbers, size)
    return ops.while_loop(left, go_on, (first, numbers, state, results))[-1]


def _one_more(steps: Steps) -> Callable[..., Any]:
    return lambda position, *now: (position + 1, *steps.advance(position, *now))


def _numbers(chosen: Any) -> Any:
    """The rows of which it is true, ``[batch]`` → ``[chosen]``."""
    return ops.cast(ops.nonzero(chosen)[0], "int32")


def _select(state: tuple[Any, Any, Any], numbers: Any, size: int) -> tuple[Any, Any, Any]:
    """What is told, rows and prefixes of some rows."""
    own = ops.reshape(numbers[:, None] * size + ops.arange(size, dtype="int32"), (-1,))
    told, rows, prefixes = state
    told = keras.tree.map_structure(
        lambda x: x if x.shape[0] == 1 else ops.take(x, numbers, axis=0), told
    )
    return told, select(rows, numbers), select(prefixes, own)


def select(state: Any, numbers: Any) -> Any:
    """Some entries of all tensors of a structure, along their first axis."""
    return keras.tree.map_structure(lambda x: ops.take(x, numbers, axis=0), state)
