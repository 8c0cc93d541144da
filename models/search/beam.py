"""Beam search with finished hypotheses kept apart."""

from __future__ import annotations

from typing import Any

from keras import ops

from models.search.base import (
    IMPOSSIBLE,
    Hypotheses,
    Search,
    Step,
    log_probabilities,
    moving,
    select,
    write,
)
from models.vocabulary import BOS, EOS, PAD


class BeamSearch(Search):
    """The best hypotheses of all that a beam of prefixes leads to.

    Hypotheses are ordered by log P(y|x) / ((5 + |y|) / 6)^α, EOS counted: Wu et al. 2016,
    "Google's Neural Machine Translation System", §7 (eq. 14). A row is done when no living
    prefix can still beat its worst finished hypothesis: log-probabilities only fall, so a
    prefix is worth at most what it has now over the greatest penalty it can reach.

    With one prefix and no length penalty this is greedy search.

    Args:
        beam_size: how many prefixes live, and how many hypotheses are given.
        length_penalty: α; 0 orders by plain log-probability, which favours short hypotheses.

    Raises:
        ValueError: ``beam_size`` is less than 1, or ``length_penalty`` is negative.
    """

    def __init__(self, beam_size: int = 5, length_penalty: float = 0.6):
        if beam_size < 1:
            raise ValueError(f"beam_size must be at least 1, not {beam_size}.")
        if length_penalty < 0:
            raise ValueError(f"length_penalty must not be negative, but is {length_penalty}.")
        self.beam_size, self.length_penalty = beam_size, length_penalty

    def penalty(self, length: Any) -> Any:
        """What the log-probability of a hypothesis of this length is divided by."""
        return ops.power((5.0 + ops.cast(length, "float32")) / 6.0, self.length_penalty)

    def __call__(self, step: Step, state: dict[str, Any], limits: Any) -> Hypotheses:
        size = self.beam_size
        limits = ops.cast(limits, "int32")
        batch, longest = ops.shape(limits)[0], ops.max(limits, initial=1)
        memory = state["memory"]
        greatest_penalty = self.penalty(limits)

        # Every tensor below is [batch, size, ...]; a row's first prefix is the only one at first.
        none = ops.tile(ops.full_like(limits, 0)[:, None], (1, size))
        alive_logp = ops.where(ops.arange(size) == 0, 0.0, IMPOSSIBLE) + ops.cast(none, "float32")
        ids = none[:, :, None] + ops.zeros((1, 1, longest), dtype="int32")
        done_logp = ops.full_like(alive_logp, IMPOSSIBLE)
        rows = ops.arange(batch)[:, None] * size
        spread = ops.reshape(ops.tile(ops.arange(batch)[:, None], (1, size)), (-1,))

        def unfinished(position: Any, tokens: Any, alive: Any, done: Any, state: Any) -> Any:
            attainable = alive[1][:, 0] / greatest_penalty
            beaten = ops.min(done[2], axis=-1) >= attainable
            return ops.logical_and(position < longest, ops.logical_not(ops.all(beaten)))

        def advance(position: Any, tokens: Any, alive: Any, done: Any, state: Any) -> Any:
            alive_ids, alive_logp = alive
            logits, new, _ = step(ops.reshape(tokens, (-1,)), {**state, "memory": memory})
            logp = log_probabilities(logits)
            pieces = ops.shape(logp)[-1]
            ends = ops.equal(ops.arange(pieces), EOS)
            # Beyond its limit a row is over; at its limit a hypothesis can only end.
            last = ops.repeat(position + 1 >= limits, size)[:, None]
            logp = ops.where(ops.logical_and(last, ops.logical_not(ends)), IMPOSSIBLE, logp)
            logp = ops.reshape(logp, (-1, size, pieces)) + alive_logp[:, :, None]

            # At most `size` of these end, so that `size` of them go on.
            top, at = ops.top_k(ops.reshape(logp, (-1, size * pieces)), 2 * size)
            parents, tokens = at // pieces, ops.cast(at % pieces, "int32")
            ids = ops.take_along_axis(alive_ids, parents[:, :, None], axis=1)
            ids = write(ids, tokens, position)

            ending = ops.equal(tokens, EOS)
            # An end counts where it is among the best of the beam, so that one prefix is greedy.
            counts = ops.logical_and(ending, ops.arange(2 * size) < size)
            counts = ops.logical_and(counts, top > IMPOSSIBLE / 2)
            done = self._merge(done, ids, ops.where(counts, top, IMPOSSIBLE), position)
            alive_logp, chosen = ops.top_k(ops.where(ending, IMPOSSIBLE, top), size)
            alive_logp = ops.maximum(alive_logp, IMPOSSIBLE)
            alive_ids = ops.take_along_axis(ids, chosen[:, :, None], axis=1)
            tokens = ops.take_along_axis(tokens, chosen, axis=1)
            parents = ops.take_along_axis(parents, chosen, axis=1)
            flat = ops.reshape(rows + ops.cast(parents, "int32"), (-1,))
            return position + 1, tokens, (alive_ids, alive_logp), done, select(new, flat)

        start = (
            0,
            none + BOS,
            (ids, alive_logp),
            (ids, done_logp, done_logp),
            select(moving(state), spread),
        )
        _, _, _, (ids, logp, scores), _ = ops.while_loop(unfinished, advance, start)
        lengths = ops.sum(ops.cast(ops.not_equal(ids, PAD), "int32"), axis=-1)
        return Hypotheses(ids, lengths, logp, scores)

    def _merge(self, done: Any, ids: Any, logp: Any, position: Any) -> Any:
        """The best finished hypotheses among the old and the new, which all end here."""
        scores = ops.where(logp > IMPOSSIBLE / 2, logp / self.penalty(position + 1), IMPOSSIBLE)
        ids = ops.concatenate([done[0], ids], axis=1)
        logp = ops.concatenate([done[1], logp], axis=1)
        scores, chosen = ops.top_k(ops.concatenate([done[2], scores], axis=1), self.beam_size)
        return (
            ops.take_along_axis(ids, chosen[:, :, None], axis=1),
            ops.take_along_axis(logp, chosen, axis=1),
            scores,
        )
