"""Phrases that every hypothesis must contain: lexically constrained decoding."""

from __future__ import annotations

from typing import Any

from keras import ops

from regard.models.search.base import MIN_SCORE
from regard.models.search.candidates import Candidates, gather
from regard.models.tensors import Tensor
from regard.models.vocabulary import PAD


class PhraseCandidates(Candidates):
    """Candidates of hypotheses that must contain phrases.

    Post and Vilar 2018, "Fast Lexically Constrained Decoding with Dynamic Beam Allocation": the
    tokens of all phrases are always candidates, and the beam is divided among the candidates by
    the number of phrase tokens that they have covered. A phrase counts wherever it occurs as a
    contiguous sequence of tokens, and phrases may overlap. A hypothesis ends only if it contains
    all phrases. Before its limit leaves no room for the rest, only their tokens may follow.

    Attributes:
        complete: ``[batch, size * columns, phrases]``, the phrases that each candidate contains.

    Args:
        phrases: ``[batch, phrases, length]``, tokens padded with PAD.
        limits: ``[batch]``, the maximum lengths including EOS; enough for all phrases.
        complete: ``[batch * size, phrases]``, the phrases that the prefixes contain.
        arguments: of ``Candidates``.
    """

    def __init__(
        self, phrases: Tensor, limits: Tensor, complete: Tensor, ids: Tensor, **arguments: Any
    ):
        self._phrases = phrases
        super().__init__(ids=ids, **arguments)
        position, size = arguments["position"], self.size
        lengths = ops.sum(ops.cast(ops.not_equal(phrases, PAD), "int32"), axis=-1)
        started = self._started(ids, position)
        # The longest start of each phrase that ends with the candidate's token.
        is_next = ops.equal(phrases[:, None, None], self._tokens[:, None, :, None, None])
        is_next = ops.logical_and(is_next, ops.not_equal(phrases, PAD)[:, None, None])
        is_next = ops.logical_and(is_next, started[:, :, None])
        progress = ops.max(ops.cast(is_next, "int32") * self._counts(), axis=-1, initial=0)
        before = ops.reshape(complete, (-1, size, 1, ops.shape(phrases)[1]))
        lengths = lengths[:, None, None]
        complete = ops.logical_or(before, ops.equal(progress, lengths))
        covered = ops.sum(ops.where(complete, lengths, 0), axis=-1)
        covered += ops.max(ops.where(complete, 0, progress), axis=-1, initial=0)
        missing = ops.sum(lengths, axis=-1) - covered
        room = limits[:, None, None] - position - 2  # for tokens after this one, without EOS
        is_eos = ops.equal(ops.arange(self.columns), self.columns - 1)
        has_all = ops.all(before, axis=-1)
        forbidden = ops.where(is_eos, ops.logical_not(has_all), missing > room)
        self.scores = ops.where(forbidden, MIN_SCORE, self.scores)
        self.scores = ops.where(self._is_repeated[:, None], MIN_SCORE, self.scores)
        self._covered = ops.where(is_eos, ops.sum(lengths, axis=-1), covered)
        self._max_covered = ops.max(ops.sum(lengths, axis=-1), initial=0)
        self.complete = ops.reshape(complete, (-1, size * self.columns, ops.shape(phrases)[1]))

    def best(self, with_eos: bool) -> tuple[Tensor, Tensor]:
        """Return the best ``size`` of a row in turn from each number of covered tokens."""
        columns = self.columns if with_eos else self.columns - 1
        scores = ops.reshape(self.scores[:, :, :columns], (-1, self.size * columns))
        covered = ops.reshape(self._covered[:, :, :columns], (-1, self.size * columns))
        order = ops.cast(ops.argsort(-scores, axis=-1), "int32")
        scores, covered = gather(scores, order), gather(covered, order)
        groups = ops.arange(self._max_covered + 1)
        is_member = ops.equal(covered[:, :, None], groups)
        counts = ops.cumsum(ops.cast(is_member, "int32"), axis=1)
        rank = ops.sum(ops.where(is_member, counts, 0), axis=-1)  # from 1, within its group
        turn = rank * (self._max_covered + 1) - covered
        turn = ops.where(scores > MIN_SCORE / 2, turn, 2**30)
        _, chosen = ops.top_k(-turn, self.size)
        indices = gather(order, chosen)
        if not with_eos:
            indices = indices // columns * self.columns + indices % columns
        return gather(scores, chosen), indices

    def _select_tokens(self, totals: Tensor) -> Tensor:
        # Relative to the best token of each prefix, because a prefix that has covered more tokens
        # has a lower score.
        best = ops.max(totals, axis=-1, keepdims=True)
        relative = ops.where(best > MIN_SCORE / 2, totals - best, MIN_SCORE)
        tokens = super()._select_tokens(relative)
        batch = ops.shape(tokens)[0]
        own = ops.reshape(self._phrases, (batch, -1))
        every = ops.concatenate([own, tokens], axis=1)
        # A token is a candidate once: in the column that is nearest to the end.
        columns = ops.arange(ops.shape(every)[1])
        is_later = columns[:, None] < columns[None]
        same = ops.logical_and(ops.equal(every[:, :, None], every[:, None]), is_later)
        self._is_repeated = ops.logical_or(ops.any(same, axis=-1), ops.equal(every, PAD))
        return every

    def _counts(self) -> Tensor:
        return ops.arange(ops.shape(self._phrases)[2], dtype="int32") + 1

    def _started(self, ids: Tensor, position: Tensor) -> Tensor:
        """Return which starts of phrases the prefixes end with.

        Entry n of ``[batch, size, phrases, length]`` is for the first n tokens of a phrase.
        """
        length = ops.shape(self._phrases)[2]
        count, index = ops.arange(length)[:, None], ops.arange(length)[None]
        places = ops.maximum(position - count + index, 0)
        places = ops.minimum(places, ops.shape(ids)[1] - 1)
        recent = ops.take(ids, ops.reshape(places, (-1,)), axis=1)
        recent = ops.reshape(recent, (-1, self.size, 1, length, length))
        equal = ops.equal(recent, self._phrases[:, None, :, None])
        return ops.logical_and(
            ops.all(ops.logical_or(equal, index >= count), axis=-1), count[:, 0] <= position
        )
