"""Beam search with finished hypotheses kept apart."""

from __future__ import annotations

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
    write,
)
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
        self.coverage_penalty = coverage_penalty
        self.penalties = check_penalties(no_repeat_ngram, repetition_penalty)

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

        # Prefixes and hypotheses are (ids, log-probabilities, what they are ordered by), each
        # [batch, prefixes or hypotheses, ...]; at first a row has one prefix and no hypothesis.
        zeros = ops.tile(ops.zeros_like(limits)[:, None], (1, size))
        ids = zeros[:, :, None] + ops.zeros((1, 1, longest), dtype="int32")
        worth = ops.where(ops.arange(size) == 0, 0.0, IMPOSSIBLE) + ops.cast(zeros, "float32")
        nothing = ops.full_like(worth[:, : self.hypotheses], IMPOSSIBLE)
        followed = {"decoder": spread(moving(state), batch, size)}
        if self.coverage_penalty:
            real = ops.repeat(memory["mask"], size, axis=0)
            followed["seen"] = ops.cast(ops.zeros_like(real), "float32")

        def unfinished(position: Any, tokens: Any, alive: Any, done: Any, followed: Any) -> Any:
            best = alive[2][:, 0]
            over = done[2][:, -1] >= best / greatest_penalty
            over = ops.logical_or(over, best <= IMPOSSIBLE / 2)
            over = ops.logical_or(over, position >= limits)
            return ops.logical_not(ops.all(over))

        def advance(position: Any, tokens: Any, alive: Any, done: Any, followed: Any) -> Any:
            current = {**followed["decoder"], "memory": memory}
            logits, new, alignment = step(ops.reshape(tokens, (-1,)), current)
            followed = {**followed, "decoder": moving(new)}
            pieces = ops.shape(logits)[-1]
            own, worth = rules(logits, ops.reshape(alive[0], (-1, longest)), position)
            worth = ops.reshape(worth, (-1, size, pieces)) + alive[2][:, :, None]

            # At most `size` of these end, so that `size` of them go on.
            worth, parents, tokens = _top(worth, 2 * size)
            logp = worth
            if rules.penalised:
                own = ops.reshape(own, (-1, size * pieces))
                logp = _pick(alive[1], parents) + _pick(own, parents * pieces + tokens)
            ids = write(_pick(alive[0], parents), tokens, position)

            ending = ops.equal(tokens, EOS)
            # An end counts where it is among the best of the beam, so that one prefix is greedy.
            counts = ops.logical_and(ending, worth > IMPOSSIBLE / 2)[:, :size]
            scores = worth[:, :size] / self.penalty(position + 1)
            if self.coverage_penalty:
                followed["seen"] = followed["seen"] + ops.cast(alignment, "float32")
                covered = ops.reshape(_coverage(followed["seen"], real), (-1, size))
                scores = scores + self.coverage_penalty * _pick(covered, parents[:, :size])
            scores = ops.where(counts, scores, IMPOSSIBLE)
            done = self._merge(done, (ids[:, :size], logp[:, :size], scores))

            worth, chosen = ops.top_k(ops.where(ending, IMPOSSIBLE, worth), size)
            # What is impossible stays so, but does not become more so with every step.
            worth = ops.maximum(worth, IMPOSSIBLE)
            ids, logp, tokens, parents = (_pick(x, chosen) for x in (ids, logp, tokens, parents))
            rows = ops.reshape(ops.arange(batch, dtype="int32")[:, None] * size + parents, (-1,))
            return position + 1, tokens, (ids, logp, worth), done, select(followed, rows)

        start = (
            0,
            zeros + BOS,
            (ids, worth, worth),
            (ids[:, : self.hypotheses], nothing, nothing),
            followed,
        )
        _, _, _, (ids, logp, scores), _ = ops.while_loop(unfinished, advance, start)
        found = scores > IMPOSSIBLE / 2
        return Hypotheses(ids, ops.where(found, lengths_of(ids), 0), logp, scores)

    def _merge(self, done: Any, ended: Any) -> Any:
        """The best of the old hypotheses and those that end here."""
        ids, logp, scores = (
            ops.concatenate(both, axis=1) for both in zip(done, ended, strict=True)
        )
        scores, chosen = ops.top_k(scores, self.hypotheses)
        return _pick(ids, chosen), _pick(logp, chosen), scores


def _top(worth: Any, count: int) -> tuple[Any, Any, Any]:
    """The best of ``[batch, size, pieces]``: worth, prefix and piece, each ``[batch, count]``.

    They are among the ``count`` pieces that are worth most behind any prefix, and to look for
    those first leaves a fraction of the numbers to go through for the best. Where the number of
    pieces is known only at run time there are few.
    """
    size, pieces = ops.shape(worth)[1:]
    some = ops.arange(pieces, dtype="int32")[None]
    if worth.shape[-1] is not None and pieces > count:
        _, some = ops.top_k(ops.max(worth, axis=1), count)
        some = ops.cast(some, "int32")
        worth = ops.take_along_axis(worth, some[:, None], axis=2)
        pieces = count
    worth, at = ops.top_k(ops.reshape(worth, (-1, size * pieces)), count)
    at = ops.cast(at, "int32")
    some = ops.broadcast_to(some, (ops.shape(at)[0], pieces))
    return worth, at // pieces, ops.take_along_axis(some, at % pieces, 1)


def _coverage(seen: Any, real: Any) -> Any:
    """Σ log(min(seen, 1)) over the real source positions, ``[rows, source]`` → ``[rows]``."""
    return ops.sum(ops.where(real, ops.log(ops.clip(seen, UNSEEN, 1.0)), 0.0), axis=-1)


def _pick(x: Any, at: Any) -> Any:
    """The entries ``at`` ``[batch, n]`` of ``x`` ``[batch, m, ...]`` as ``[batch, n, ...]``."""
    batch, count, *rest = ops.shape(x)
    rows = ops.arange(batch, dtype="int32")[:, None] * count + ops.cast(at, "int32")
    return ops.take(ops.reshape(x, (-1, *rest)), rows, axis=0)
