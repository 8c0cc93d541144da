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
    spread,
    unmoved,
    write,
)
from models.search.options import Options, pick
from models.search.rows import select, walk
from models.search.rules import Rules, asked, check_penalties
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
    length penalty it can reach, and the coverage term is at most 0. With ``patience`` it is done
    too when so many hypotheses have ended as this is times the beam (Kasai et al. 2024, "A Call for
    Clarity in Beam Search: How It Works and When It Stops", §2): with 1 when the beam is full,
    which is where most systems stop, though a better one might come.

    With one prefix and no length penalty this is greedy search.

    Args:
        beam_size: how many prefixes live.
        length_penalty: α; 0 orders by plain log-probability, which favours short hypotheses.
        coverage_penalty: β, how much it costs to leave source positions unseen; 0: nothing.
        n_best: how many hypotheses are given; by default ``beam_size``.
        no_repeat_ngram: how long a run of pieces must be to come only once; 0: runs may repeat.
        repetition_penalty: what the logits of pieces that are there already are divided by. With
            it, log P above is the penalised one.
        patience: how many times ``beam_size`` hypotheses have to end; by default a row is done
            when no better hypothesis can come.

    Raises:
        ValueError: ``beam_size`` is less than 1, ``n_best`` is less than 1 or more than
            ``beam_size``, a penalty is out of its range, or ``patience`` would end the search
            before there are ``n_best``.
    """

    def __init__(
        self,
        beam_size: int = 5,
        length_penalty: float = 0.6,
        coverage_penalty: float = 0.0,
        n_best: int | None = None,
        no_repeat_ngram: int = 0,
        repetition_penalty: float = 1.0,
        patience: float | None = None,
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
        if patience is not None and patience * beam_size < n_best:
            raise ValueError(
                f"patience must be at least {n_best / beam_size:g}, so that {n_best} hypotheses "
                f"(n_best) of {beam_size} (beam_size) are found, but is {patience}."
            )
        self.patience = patience
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
        told = {"memory": state["memory"], "asked": asked(limits, minimums, prefix)}
        batch, longest = ops.shape(limits)[0], ops.max(limits, initial=1)

        # Prefixes and hypotheses have log-probabilities and what they are ordered by, [batch,
        # prefixes or hypotheses]; at first a row has one prefix and no hypothesis.
        zeros = ops.tile(ops.zeros_like(limits)[:, None], (1, size))
        worth = ops.where(ops.arange(size) == 0, 0.0, IMPOSSIBLE) + ops.cast(zeros, "float32")
        nothing = ops.full_like(worth[:, : self.hypotheses], IMPOSSIBLE)
        ids = zeros[:, :, None] + ops.zeros((1, 1, longest), dtype="int32")
        rows = {
            "tokens": zeros + BOS,
            "alive": (worth, worth),
            "done": (ids[:, : self.hypotheses], nothing, nothing),
            "written": unmoved(state),
        }
        if self.patience is not None:
            rows["ended"] = zeros[:, 0]
        prefixes = {
            "own": spread(moving(state), batch, size),
            "ids": ops.reshape(ids, (-1, longest)),
        }
        if self.coverage_penalty:
            mask = ops.repeat(state["memory"]["mask"], size, axis=0)
            prefixes["seen"] = ops.cast(ops.zeros_like(mask), "float32")
        ids, logp, scores = walk(
            lambda told: _Beam(self, step, told),
            told,
            rows,
            prefixes,
            size,
            lambda rows, prefixes: rows["done"],
        )
        found = scores > IMPOSSIBLE / 2
        return Hypotheses(ids, ops.where(found, lengths_of(ids), 0), logp, scores)


class _Beam:
    """The steps of a beam search, for the rows that are told about."""

    def __init__(self, search: BeamSearch, step: Step, told: dict[str, Any]):
        self.search, self.step, self.told, self.size = search, step, told, search.beam_size
        self.limits = told["asked"]["limits"]
        self.rules = Rules(**told["asked"], hypotheses=self.size, **search.penalties)
        self.greatest_penalty = search.penalty(self.limits)
        rows = ops.shape(self.limits)[0]
        self.first = ops.arange(rows, dtype="int32")[:, None] * self.size

    def unfinished(self, position: Any, rows: dict[str, Any], prefixes: Any) -> Any:
        best = rows["alive"][1][:, 0]
        over = ops.logical_or(best <= IMPOSSIBLE / 2, position >= self.limits)
        over = ops.logical_or(over, rows["done"][2][:, -1] >= best / self.greatest_penalty)
        if self.search.patience is not None:
            enough = self.search.patience * self.size
            over = ops.logical_or(over, ops.cast(rows["ended"], "float32") >= enough)
        return ops.logical_not(over)

    def advance(
        self, position: Any, rows: dict[str, Any], prefixes: dict[str, Any]
    ) -> tuple[Any, Any]:
        memory, (logp, worth) = self.told["memory"], rows["alive"]
        logits, new, alignment = self.step(
            ops.reshape(rows["tokens"], (-1,)),
            {**prefixes["own"], "written": rows["written"], "memory": memory},
        )
        options = Options(self.rules, logits, prefixes["ids"], position, worth)
        prefixes = {**prefixes, "own": moving(new)}
        if self.search.coverage_penalty:
            prefixes["seen"] = prefixes["seen"] + ops.cast(alignment, "float32")

        ended = self._ended(position, rows, prefixes, options)
        worth, at = options.best(ending=False)
        # What is impossible stays so, but does not become more so with every step.
        worth = ops.maximum(worth, IMPOSSIBLE)
        parents, tokens = options.prefixes(at), options.pieces(at)
        prefixes = select(prefixes, ops.reshape(self.first + parents, (-1,)))
        prefixes["ids"] = write(prefixes["ids"], ops.reshape(tokens, (-1, 1)), position)
        alive = (_total(logp, worth, options, at), worth)
        changed = {"tokens": tokens, "alive": alive, "written": unmoved(new)}
        return {**rows, **changed, **ended}, prefixes

    def _ended(
        self, position: Any, rows: dict[str, Any], prefixes: dict[str, Any], options: Options
    ) -> dict[str, Any]:
        """The best hypotheses of the old ones and those that end here, and how many did."""
        # An end counts where it is among the best of the beam, so that one prefix is greedy.
        worth, at = options.best(ending=True)
        counts = ops.logical_and(options.end(at), worth > IMPOSSIBLE / 2)
        if self.search.patience is not None:
            counts = ops.logical_and(counts, self.unfinished(position, rows, prefixes)[:, None])
        parents = options.prefixes(at)
        scores = worth / self.search.penalty(position + 1)
        if self.search.coverage_penalty:
            real = ops.repeat(self.told["memory"]["mask"], self.size, axis=0)
            covered = ops.reshape(_coverage(prefixes["seen"], real), (-1, self.size))
            scores = scores + self.search.coverage_penalty * pick(covered, parents)
        scores = ops.where(counts, scores, IMPOSSIBLE)
        ids = write(ops.take(prefixes["ids"], self.first + parents, axis=0), EOS, position)
        ended = ids, _total(rows["alive"][0], worth, options, at), scores
        ids, logp, scores = (
            ops.concatenate(both, axis=1) for both in zip(rows["done"], ended, strict=True)
        )
        scores, chosen = ops.top_k(scores, self.search.hypotheses)
        found = {"done": (pick(ids, chosen), pick(logp, chosen), scores)}
        if self.search.patience is not None:
            found["ended"] = rows["ended"] + ops.sum(ops.cast(counts, "int32"), axis=1)
        return found


def _total(before: Any, worth: Any, options: Options, at: Any) -> Any:
    """The log-probabilities of options: what they are worth, unless there are penalties in it."""
    if options.gains is None:
        return worth
    gains = ops.reshape(options.gains, (-1, options.size * options.columns))
    return pick(before, options.prefixes(at)) + pick(gains, at)


def _coverage(seen: Any, real: Any) -> Any:
    """Σ log(min(seen, 1)) over the real source positions, ``[rows, source]`` → ``[rows]``."""
    return ops.sum(ops.where(real, ops.log(ops.clip(seen, UNSEEN, 1.0)), 0.0), axis=-1)
