"""Hypotheses that grow piece by piece, each on its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras import ops

from models.search.base import Step, lengths_of, moving, spread, unmoved, write
from models.search.rules import Rules
from models.vocabulary import BOS, EOS, PAD


def roll_out(
    step: Step,
    state: dict[str, Any],
    rules: Rules,
    choose: Callable[[Any, Any], Any],
    hypotheses: int = 1,
) -> tuple[Any, Any, Any]:
    """Takes pieces one after another until all hypotheses have ended.

    Args:
        step: a decoder's.
        state: the decoder's before its first token, of ``batch`` rows.
        rules: what may come, for ``rows = batch * hypotheses``.
        choose: from what the pieces are worth ``[rows, pieces]`` and the position to the pieces
            taken, ``[rows]``.
        hypotheses: how many each row of the state has.

    Returns:
        Ids ``[rows, length]``, lengths ``[rows]`` and log-probabilities ``[rows]``, as in
        ``Hypotheses``.
    """
    limits, memory = rules.limits, state["memory"]
    longest = ops.max(limits, initial=1)
    ids = ops.zeros_like(limits)[:, None] + ops.zeros((1, longest), dtype="int32")
    total = ops.cast(ops.zeros_like(limits), "float32")
    batch = ops.shape(limits)[0] // hypotheses

    def unfinished(position: Any, tokens: Any, *_: Any) -> Any:
        return ops.logical_and(position < longest, ops.any(ops.not_equal(tokens, EOS)))

    def advance(position: Any, tokens: Any, ids: Any, total: Any, state: Any) -> Any:
        done = ops.equal(tokens, EOS)
        logits, new, _ = step(
            tokens, {**state["own"], "written": state["written"], "memory": memory}
        )
        own, worth = rules(logits, ids, position)
        taken = ops.cast(choose(worth, position), "int32")
        gain = ops.take_along_axis(own, taken[:, None], axis=-1)[:, 0]
        ids = write(ids, ops.where(done, PAD, taken)[:, None], position)
        total = total + ops.where(done, 0.0, gain)
        state = {"own": moving(new), "written": unmoved(new)}
        return position + 1, ops.where(done, EOS, taken), ids, total, state

    # No hypothesis goes on from another, so each has a row of its own also for what is written.
    rows = spread({"own": moving(state), "written": unmoved(state)}, batch, hypotheses)
    start = (0, ops.full_like(limits, BOS), ids, total, rows)
    _, _, ids, total, _ = ops.while_loop(unfinished, advance, start)
    return ids, lengths_of(ids), total
