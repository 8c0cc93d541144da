"""Greedy search: the most probable piece at every step."""

from __future__ import annotations

from typing import Any

from keras import ops

from models.search.base import Hypotheses, Search, Step
from models.search.rollout import roll_out
from models.search.rules import asked, check_penalties


class GreedySearch(Search):
    """Takes the best piece at every step; one hypothesis a row.

    Args:
        no_repeat_ngram: how long a run of pieces must be to come only once; 0: runs may repeat.
        repetition_penalty: what the logits of pieces that are there already are divided by.

    Raises:
        ValueError: ``no_repeat_ngram`` is negative, or ``repetition_penalty`` is below 1.
    """

    def __init__(self, no_repeat_ngram: int = 0, repetition_penalty: float = 1.0):
        self.penalties = check_penalties(no_repeat_ngram, repetition_penalty)

    def __call__(
        self,
        step: Step,
        state: dict[str, Any],
        limits: Any,
        *,
        minimums: Any = None,
        prefix: Any = None,
        keys: Any = None,
    ) -> Hypotheses:
        told = {"asked": asked(limits, minimums, prefix)}

        def choose(worth: Any, position: Any, told: Any) -> Any:
            return ops.argmax(worth, axis=-1)

        ids, lengths, total = roll_out(step, state, told, choose, **self.penalties)
        return Hypotheses(ids, lengths, total, total)
