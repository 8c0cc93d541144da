"""Which pieces may come next, and what each is worth: the same rules for every search."""

from __future__ import annotations

from typing import Any

from keras import ops

from models.search.base import IMPOSSIBLE
from models.vocabulary import BOS, EOS, PAD


def check_penalties(no_repeat_ngram: int, repetition_penalty: float) -> dict[str, Any]:
    """The two as arguments of ``Rules``.

    Raises:
        ValueError: ``no_repeat_ngram`` is negative, or ``repetition_penalty`` is below 1.
    """
    if no_repeat_ngram < 0:
        raise ValueError(f"no_repeat_ngram must not be negative, but is {no_repeat_ngram}.")
    if repetition_penalty < 1:
        raise ValueError(f"repetition_penalty must be at least 1, not {repetition_penalty}.")
    return {"no_repeat_ngram": no_repeat_ngram, "repetition_penalty": repetition_penalty}


def asked(limits: Any, minimums: Any = None, prefix: Any = None) -> dict[str, Any]:
    """What is asked of rows, as arguments of ``Rules``: tensors of int32 with a row for each."""
    given = {"limits": limits, "minimums": minimums, "prefix": prefix}
    return {name: ops.cast(x, "int32") for name, x in given.items() if x is not None}


class Rules:
    """What the hypotheses of a batch may go on with.

    PAD and BOS are never an answer. Where rules contradict each other, the limit comes before
    the prefix, the prefix before all others, and a hypothesis that cannot go on may end even
    before its minimum. A row's rules are its own.

    Args:
        limits: ``[batch]``, the greatest lengths, EOS counted.
        minimums: ``[batch]``, the least lengths, EOS counted.
        prefix: ``[batch, prefix]``, what hypotheses begin with, padded with PAD.
        hypotheses: how many a row has; below, ``rows`` are ``batch * hypotheses``.
        no_repeat_ngram: how long a run of pieces must be to come only once; 0: runs may repeat
            (Paulus et al. 2018, "A Deep Reinforced Model for Abstractive Summarization", §2.5).
        repetition_penalty: θ, by which the logits of pieces that are there already are divided
            (Keskar et al. 2019, "CTRL", §4.1), or multiplied where they are negative, so that it
            is always a loss; 1: none.
    """

    def __init__(
        self,
        limits: Any,
        minimums: Any = None,
        prefix: Any = None,
        hypotheses: int = 1,
        no_repeat_ngram: int = 0,
        repetition_penalty: float = 1.0,
    ):
        def every(x: Any) -> Any:
            x = ops.cast(x, "int32")
            return x if hypotheses == 1 else ops.repeat(x, hypotheses, axis=0)

        self.hypotheses, self.limits = hypotheses, every(limits)
        self.minimums = self.prefix = None
        if minimums is not None:
            self.minimums = ops.minimum(every(minimums), self.limits)
        if prefix is not None:
            # One column more, so that there is something to read behind the prefix.
            prefix = every(prefix)
            self.prefix = ops.concatenate([prefix, (self.limits * 0 + PAD)[:, None]], axis=1)
        self.no_repeat_ngram = no_repeat_ngram
        self.repetition_penalty = repetition_penalty

    @property
    def penalised(self) -> bool:
        """Whether a piece may be worth something else than its log-probability."""
        return self.repetition_penalty != 1.0

    @property
    def by_piece(self) -> bool:
        """Whether it takes more than ``late`` to know which pieces may come and their worth."""
        return self.penalised or bool(self.no_repeat_ngram) or self.prefix is not None

    def __call__(self, logits: Any, ids: Any, position: Any) -> tuple[Any, Any]:
        """The model's log-probabilities of all pieces, and what the pieces are worth.

        Pieces are ruled out after the normalisation, so that sums stay what forced scoring gives.

        Args:
            logits: ``[rows, pieces]``.
            ids: ``[rows, length]``, the pieces so far, PAD behind.
            position: how many pieces there are so far.

        Returns:
            Two tensors ``[rows, pieces]`` in float32: log-probabilities, and log-probabilities
            after the penalty and with ``IMPOSSIBLE`` for what must not come.
        """
        logits = ops.cast(logits, "float32")
        own = ops.log_softmax(logits, axis=-1)
        worth = own
        pieces = ops.arange(ops.shape(own)[-1], dtype="int32")
        if self.penalised:
            there = ops.logical_and(_marked(ids, pieces), ops.not_equal(pieces, PAD))
            factor = ops.where(logits > 0.0, 1.0 / self.repetition_penalty, self.repetition_penalty)
            worth = ops.log_softmax(ops.where(there, logits * factor, logits), axis=-1)
        return own, ops.where(self._forbidden(pieces, ids, position), IMPOSSIBLE, worth)

    def late(self, ends: Any, position: Any) -> Any:
        """Which pieces must not come for the length alone, ``[batch, hypotheses, columns]``.

        Args:
            ends: which of some pieces, PAD and BOS not among them, are EOS, ``[columns]``.
            position: how many pieces there are so far.
        """
        last = position + 1 >= self.limits
        forbidden = ops.logical_and(last[:, None], ops.logical_not(ends))
        if self.minimums is not None:
            early = position + 1 < self.minimums
            forbidden = ops.logical_or(forbidden, ops.logical_and(early[:, None], ends))
        return ops.reshape(forbidden, (-1, self.hypotheses, ops.shape(ends)[0]))

    def _forbidden(self, pieces: Any, ids: Any, position: Any) -> Any:
        """Which pieces must not come, ``[rows, pieces]``."""
        ends = ops.equal(pieces, EOS)
        forbidden = ops.logical_or(ops.equal(pieces, PAD), ops.equal(pieces, BOS))
        if self.no_repeat_ngram:
            forbidden = ops.logical_or(forbidden, self._repeated(pieces, ids, position))
        if self.minimums is not None:
            early = (position + 1 < self.minimums)[:, None]
            if self.no_repeat_ngram:
                stuck = ops.all(ops.logical_or(forbidden, ends), axis=-1, keepdims=True)
                early = ops.logical_and(early, ops.logical_not(stuck))
            forbidden = ops.logical_or(forbidden, ops.logical_and(early, ends))
        last = (position + 1 >= self.limits)[:, None]
        if self.prefix is None:
            others = ops.logical_not(ends)
            return ops.logical_or(forbidden, ops.logical_and(last, others))
        column = ops.minimum(position, ops.shape(self.prefix)[1] - 1)
        forced = ops.take(self.prefix, column, axis=1)[:, None]
        forced = ops.where(last, EOS, forced)
        return ops.where(ops.equal(forced, PAD), forbidden, ops.not_equal(pieces, forced))

    def _repeated(self, pieces: Any, ids: Any, position: Any) -> Any:
        """Which pieces would make a run that is there already, ``[rows, pieces]``."""
        run, end = self.no_repeat_ngram, ops.shape(ids)[1] - 1
        starts = ops.arange(end + 1, dtype="int32")
        # A run that starts here is complete, and all but its last piece are our last pieces.
        same = (starts + run <= position)[None]
        for back in range(1, run):
            ours = ops.take(ids, ops.maximum(position - back, 0), axis=1)[:, None]
            theirs = ops.take(ids, ops.minimum(starts + (run - 1 - back), end), axis=1)
            same = ops.logical_and(same, ops.equal(ours, theirs))
        after = ops.take(ids, ops.minimum(starts + (run - 1), end), axis=1)
        return _marked(ops.where(same, after, PAD), pieces)


def _marked(ids: Any, pieces: Any) -> Any:
    """Which pieces are among ``ids`` ``[rows, length]``, as ``[rows, pieces]``."""
    rows = ops.arange(ops.shape(ids)[0], dtype="int32")[:, None] + ids * 0
    indices = ops.reshape(ops.stack([rows, ids], axis=-1), (-1, 2))
    ones = ops.cast(ops.ones_like(indices[:, 0]), "float32")
    return ops.scatter(indices, ones, (ops.shape(ids)[0], ops.shape(pieces)[0])) > 0.0
