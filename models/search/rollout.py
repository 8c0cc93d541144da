"""Hypotheses that grow piece by piece, each on its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras import ops

from models.search.base import Step, lengths_of, moving, spread, unmoved, write
from models.search.rows import walk
from models.search.rules import Rules
from models.vocabulary import BOS, EOS, PAD


def roll_out(
    step: Step,
    state: dict[str, Any],
    told: dict[str, Any],
    choose: Callable[[Any, Any, dict[str, Any]], Any],
    hypotheses: int = 1,
    **penalties: Any,
) -> tuple[Any, Any, Any]:
    """Takes pieces one after another until all hypotheses have ended.

    Args:
        step: a decoder's.
        state: the decoder's before its first token, of ``batch`` rows.
        told: what is known of the rows, tensors ``[batch, ...]``; ``asked`` are ``Rules``'s.
        choose: from what the pieces are worth ``[batch * hypotheses, pieces]``, the position and
            what is told of the rows to the pieces taken, ``[batch * hypotheses]``.
        hypotheses: how many each row of the state has.
        penalties: those of the rules.

    Returns:
        Ids ``[batch, hypotheses, length]``, lengths and log-probabilities ``[batch, hypotheses]``,
        as in ``Hypotheses``.
    """
    limits = ops.repeat(told["asked"]["limits"], hypotheses, axis=0)
    longest = ops.max(limits, initial=1)
    own = {
        # No hypothesis goes on from another, so each has a row of its own also for what is written.
        **spread(
            {"own": moving(state), "written": unmoved(state)},
            ops.shape(told["asked"]["limits"])[0],
            hypotheses,
        ),
        "tokens": ops.full_like(limits, BOS),
        "ids": ops.zeros_like(limits)[:, None] + ops.zeros((1, longest), dtype="int32"),
        "total": ops.cast(ops.zeros_like(limits), "float32"),
    }

    def begin(told: dict[str, Any]) -> _RollOut:
        rules = Rules(**told["asked"], hypotheses=hypotheses, **penalties)
        return _RollOut(step, rules, told, choose)

    def result(_: Any, own: dict[str, Any]) -> tuple[Any, Any]:
        ids = ops.reshape(own["ids"], (-1, hypotheses, longest))
        return ids, ops.reshape(own["total"], (-1, hypotheses))

    told = {**told, "memory": state["memory"]}
    ids, total = walk(begin, told, {}, own, hypotheses, result)
    return ids, lengths_of(ids), total


class _RollOut:
    """The steps of hypotheses that have nothing to do with one another, for some rows."""

    def __init__(self, step: Step, rules: Rules, told: dict[str, Any], choose: Callable[..., Any]):
        self.step, self.rules, self.told, self.choose = step, rules, told, choose

    def unfinished(self, position: Any, _: Any, own: dict[str, Any]) -> Any:
        # At its limit a hypothesis ends, so none goes on behind it.
        going = ops.reshape(ops.not_equal(own["tokens"], EOS), (-1, self.rules.hypotheses))
        return ops.any(going, axis=1)

    def advance(self, position: Any, rows: Any, own: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        tokens, ids = own["tokens"], own["ids"]
        done = ops.equal(tokens, EOS)
        logits, new, _ = self.step(
            tokens, {**own["own"], "written": own["written"], "memory": self.told["memory"]}
        )
        likely, worth = self.rules(logits, ids, position)
        taken = ops.cast(self.choose(worth, position, self.told), "int32")
        gain = ops.take_along_axis(likely, taken[:, None], axis=-1)[:, 0]
        return rows, {
            "own": moving(new),
            "written": unmoved(new),
            "tokens": ops.where(done, EOS, taken),
            "ids": write(ids, ops.where(done, PAD, taken)[:, None], position),
            "total": own["total"] + ops.where(done, 0.0, gain),
        }
