"""Greedy search: the most probable piece at every step."""

from __future__ import annotations

from typing import Any

from keras import ops

from models.search.base import Hypotheses, Search, Step, log_probabilities, moving, write
from models.vocabulary import BOS, EOS, PAD


class GreedySearch(Search):
    """Takes the best piece at every step; one hypothesis a row."""

    def __call__(self, step: Step, state: dict[str, Any], limits: Any) -> Hypotheses:
        limits = ops.cast(limits, "int32")
        longest = ops.max(limits, initial=1)
        tokens = ops.full_like(limits, BOS)
        ids = ops.zeros_like(limits)[:, None] + ops.zeros((1, longest), dtype="int32")
        total = ops.cast(ops.zeros_like(limits), "float32")
        memory = state["memory"]

        def unfinished(position: Any, tokens: Any, *_: Any) -> Any:
            return ops.logical_and(position < longest, ops.any(ops.not_equal(tokens, EOS)))

        def advance(position: Any, tokens: Any, ids: Any, total: Any, state: Any) -> Any:
            done = ops.equal(tokens, EOS)
            logits, new, _ = step(tokens, {**state, "memory": memory})
            logp = log_probabilities(logits)
            best = ops.cast(ops.argmax(logp, axis=-1), "int32")
            best = ops.where(position + 1 >= limits, EOS, best)
            gain = ops.take_along_axis(logp, best[:, None], axis=-1)[:, 0]
            ids = write(ids, ops.where(done, PAD, best), position)
            total = total + ops.where(done, 0.0, gain)
            return position + 1, ops.where(done, EOS, best), ids, total, moving(new)

        _, _, ids, total, _ = ops.while_loop(
            unfinished, advance, (0, tokens, ids, total, moving(state))
        )
        lengths = ops.sum(ops.cast(ops.not_equal(ids, PAD), "int32"), axis=-1)
        return Hypotheses(ids[:, None], lengths[:, None], total[:, None], total[:, None])
