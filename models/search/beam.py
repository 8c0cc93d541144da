"""Beam search with finished hypotheses kept apart."""

from __future__ import annotations

import copy
from typing import Any

from keras import ops

from models.search.base import (
    IMPOSSIBLE,
    Hypotheses,
    Search,
    Step,
    lengths_of,
    moving,
    select,
    spread,
    unmoved,
    write,
)
from models.search.options import Options, pick
from models.search.rules import Rules, check_penalties
from models.vocabulary import BOS, EOS

# What a source position has been seen at least, so that an unseen one costs no infinity.
UNSEEN = 1e-4


class BeamSearch(Search):
    """The best hypotheses of all that a beam of prefixes leads to.

    Wu et al. 2016, "Google's Neural Machine Translation System", §7 (eq. 14): hypotheses are
    ordered by log P(y|x) / ((5 + |y|) / 6)^α + β Σ_i log(min(Σ_j p_ij, 1)), EOS counted, where
    p_ij is the weight of the source's i-th position in the alignment of the j-th piece. Prefixes
    of one length are ordered by log P alone.

    A row is done when no living prefix can still beat the worst hypothesis it gives: what its
    pieces are worth only falls, so a prefix is worth at most what it has now over the greatest
    length penalty it can reach, and the coverage term is at most 0.

    With one prefix and no length penalty this is greedy search.

    Args:
        beam_size: how many prefixes live.
        length_penalty: α; 0 orders by plain log-probability, which favours short hypotheses.
        coverage_penalty: β, how much it costs to leave source positions unseen; 0: nothing.
        n_best: how many hypotheses are given; by default ``beam_size``.
        no_repeat_ngram: how long a run of pieces must be to come only once; 0: runs may repeat.
        repetition_penalty: what the logits of pieces that are there already are divided by. With
            it, log P above is the penalised one.

    Raises:
        ValueError: ``beam_size`` is less than 1, ``n_best`` is less than 1 or more than
            ``beam_size``, or a penalty is out of its range.
    """

    def __init__(
        self,
        beam_size: int = 5,
        length_penalty: float = 0.6,
        coverage_penalty: float = 0.0,
        n_best: int | None = None,
        no_repeat_ngram: int = 0,
        repetition_penalty: float = 1.0,
    ):
        if beam_size < 1:
            raise ValueError(f"beam_size must be at least 1, not {beam_size}.")
        if length_penalty < 0:
            raise ValueError(f"length_penalty must not be negative, but is {length_penalty}.")
        if coverage_penalty < 0:
            raise ValueError(f"coverage_penalty must not be negative, but is {coverage_penalty}.")
        if n_best is None:
            n_best = beam_size
        if not 1 <= n_best <= beam_size:
            raise ValueError(f"n_best must be from 1 to the beam_size, {beam_size}, not {n_best}.")
        self.beam_size, self.length_penalty, self.hypotheses = beam_size, length_penalty, n_best
        self.coverage_penalty, self.together = coverage_penalty, beam_size
        self.penalties = check_penalties(no_repeat_ngram, repetition_penalty)

    def best(self) -> BeamSearch:
        """This search for the best hypothesis alone: it looks no longer than for that."""
        search = copy.copy(self)
        search.hypotheses = 1
        return search

    def penalty(self, length: Any) -> Any:
        """What the log-probability of a hypothesis of this length is divided by."""
        return ops.power((5.0 + ops.cast(length, "float32")) / 6.0, self.length_penalty)

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
        size, limits = self.beam_size, ops.cast(limits, "int32")
        rules = Rules(limits, minimums, prefix, size, **self.penalties)
        batch, longest = ops.shape(limits)[0], ops.max(limits, initial=1)
        memory, greatest_penalty = state["memory"], self.penalty(limits)
        first = ops.arange(batch, dtype="int32")[:, None] * size

        # Prefixes and hypotheses have log-probabilities and what they are ordered by, [batch,
        # prefixes or hypotheses]; at first a row has one prefix and no hypothesis.
        zeros = ops.tile(ops.zeros_like(limits)[:, None], (1, size))
        worth = ops.where(ops.arange(size) == 0, 0.0, IMPOSSIBLE) + ops.cast(zeros, "float32")
        nothing = ops.full_like(worth[:, : self.hypotheses], IMPOSSIBLE)
        ids = zeros[:, :, None] + ops.zeros((1, 1, longest), dtype="int32")
        # What has a row a prefix, and goes where the prefix goes.
        followed = {
            "own": spread(moving(state), batch, size),
            "ids": ops.reshape(ids, (-1, longest)),
        }
        if self.coverage_penalty:
            real = ops.repeat(memory["mask"], size, axis=0)
            followed["seen"] = ops.cast(ops.zeros_like(real), "float32")

        def unfinished(position: Any, tokens: Any, alive: Any, done: Any, *_: Any) -> Any:
            best = alive[1][:, 0]
            over = done[2][:, -1] >= best / greatest_penalty
            over = ops.logical_or(over, best <= IMPOSSIBLE / 2)
            over = ops.logical_or(over, position >= limits)
            return ops.logical_not(ops.all(over))

        def advance(
            position: Any, tokens: Any, alive: Any, done: Any, followed: Any, written: Any
        ) -> Any:
            logp, worth = alive
            current = {**followed["own"], "written": written, "memory": memory}
            logits, new, alignment = step(ops.reshape(tokens, (-1,)), current)
            options = Options(rules, logits, followed["ids"], position, worth)

            # An end counts where it is among the best of the beam, so that one prefix is greedy.
            worth, at = options.best(ending=True)
            counts = ops.logical_and(options.end(at), worth > IMPOSSIBLE / 2)
            parents = options.prefixes(at)
            scores = worth / self.penalty(position + 1)
            if self.coverage_penalty:
                seen = followed["seen"] + ops.cast(alignment, "float32")
                covered = ops.reshape(_coverage(seen, real), (-1, size))
                scores = scores + self.coverage_penalty * pick(covered, parents)
                followed = {**followed, "seen": seen}
            scores = ops.where(counts, scores, IMPOSSIBLE)
            ids = ops.take(followed["ids"], first + parents, axis=0)
            done = self._merge(
                done, (write(ids, EOS, position), _total(logp, worth, options, at), scores)
            )

            worth, at = options.best(ending=False)
            # What is impossible stays so, but does not become more so with every step.
            worth = ops.maximum(worth, IMPOSSIBLE)
            parents, tokens = options.prefixes(at), options.pieces(at)
            rows = ops.reshape(first + parents, (-1,))
            followed = select({**followed, "own": moving(new)}, rows)
            followed["ids"] = write(followed["ids"], ops.reshape(tokens, (-1, 1)), position)
            alive = (_total(logp, worth, options, at), worth)
            return position + 1, tokens, alive, done, followed, unmoved(new)

        done = (ids[:, : self.hypotheses], nothing, nothing)
        start = (0, zeros + BOS, (worth, worth), done, followed, unmoved(state))
        _, _, _, (ids, logp, scores), *_ = ops.while_loop(unfinished, advance, start)
        found = scores > IMPOSSIBLE / 2
        return Hypotheses(ids, ops.where(found, lengths_of(ids), 0), logp, scores)

    def _merge(self, done: Any, ended: Any) -> Any:
        """The best of the old hypotheses and those that end here."""
        ids, logp, scores = (
            ops.concatenate(both, axis=1) for both in zip(done, ended, strict=True)
        )
        scores, chosen = ops.top_k(scores, self.hypotheses)
        return pick(ids, chosen), pick(logp, chosen), scores


def _total(before: Any, worth: Any, options: Options, at: Any) -> Any:
    """The log-probabilities of options: what they are worth, unless there are penalties in it."""
    if options.gains is None:
        return worth
    gains = ops.reshape(options.gains, (-1, options.size * options.columns))
    return pick(before, options.prefixes(at)) + pick(gains, at)


def _coverage(seen: Any, real: Any) -> Any:
    """Σ log(min(seen, 1)) over the real source positions, ``[rows, source]`` → ``[rows]``."""
    return ops.sum(ops.where(real, ops.log(ops.clip(seen, UNSEEN, 1.0)), 0.0), axis=-1)
