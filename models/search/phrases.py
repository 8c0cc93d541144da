"""Phrases that every hypothesis must contain: lexically constrained decoding."""

from typing import Any

from keras import ops

from regard.models.search.base import MIN_SCORE
from regard.models.search.candidates import Candidates, gather
from regard.models.tensors import State, Tensor
from regard.models.vocabulary import EOS, PAD


class Phrases:
    """The phrases of some rows, and which of their tokens prefixes have matched.

    Below, a slot is a position in ``tokens``, and its value for a prefix is in the entries of
    ``state``: ``matched``, whether the prefix ends with the phrase up to this slot (Baeza-Yates and
    Gonnet 1992, "A New Approach to Text Searching"), and ``complete``, whether the prefix contains
    the phrase of the slot.

    Attributes:
        tokens: ``[batch, slots]``, phrases with EOS after each, padded with PAD.
        numbers: ``[batch, slots]``, the number of each token in its phrase, from 1.
        is_last: ``[batch, slots]``, which tokens are the last ones of their phrases.
    """

    def __init__(self, tokens: Tensor):
        self.tokens = tokens
        is_eos = ops.equal(tokens, EOS)
        self._is_token = ops.logical_not(ops.logical_or(is_eos, ops.equal(tokens, PAD)))
        phrase = ops.where(self._is_token, ops.cumsum(ops.cast(is_eos, "int32"), axis=1), -1)
        slots = ops.arange(ops.shape(tokens)[1], dtype="int32")
        same = ops.cast(ops.equal(phrase[:, :, None], phrase[:, None]), "int32")
        numbers = ops.sum(ops.where(slots[:, None] >= slots, same, 0), axis=-1)
        rest = ops.sum(ops.where(slots[:, None] < slots, same, 0), axis=-1)
        self.numbers = ops.where(self._is_token, numbers, 0)
        self.is_last = ops.logical_and(self._is_token, ops.equal(rest, 0))
        self._last = slots + rest

    def state(self, size: int) -> State:
        """Return the state of ``size`` empty prefixes of each row, ``[batch * size, slots]``."""
        complete = ops.repeat(ops.logical_not(self._is_token), size, axis=0)
        return {"matched": ops.zeros_like(complete), "complete": complete}

    def advance(self, state: State, tokens: Tensor) -> State:
        """Return the state of prefixes after one more token, ``[batch, size]``."""
        size = tokens.shape[1]
        matched = ops.equal(self.tokens[:, None], tokens[:, :, None])
        matched = ops.logical_and(matched, self.started(state, size))
        last = ops.broadcast_to(self._last[:, None], ops.shape(matched))
        is_end = ops.logical_and(matched, self.is_last[:, None])
        complete = ops.take_along_axis(is_end, last, axis=-1)
        complete = ops.reshape(complete, ops.shape(state["complete"]))
        return {
            "matched": ops.reshape(matched, ops.shape(complete)),
            "complete": ops.logical_or(state["complete"], complete),
        }

    def started(self, state: State, size: int) -> Tensor:
        """Return which tokens would continue or start their phrase, ``[batch, size, slots]``."""
        matched = ops.pad(state["matched"][:, :-1], [[0, 0], [1, 0]])
        is_first = ops.equal(self.numbers, 1)[:, None]
        started = ops.logical_or(_per_row(matched, size), is_first)
        return ops.logical_and(started, self._is_token[:, None])


class PhraseCandidates(Candidates):
    """Candidates of hypotheses that must contain phrases.

    Post and Vilar 2018, "Fast Lexically Constrained Decoding with Dynamic Beam Allocation": the
    tokens of all phrases are always candidates, and the beam is divided among the candidates by
    the number of phrase tokens that they have covered. A phrase counts wherever it occurs as a
    contiguous sequence of tokens, and phrases may overlap. A hypothesis ends only if it contains
    all phrases. Before its limit leaves no room for the rest, only their tokens may follow.

    Args:
        phrases: the phrases.
        state: the state of the prefixes; see ``Phrases``.
        limits: ``[batch]``, the maximum lengths including EOS; enough for all phrases.
        position: the number of tokens of the prefixes.
        arguments: the other arguments of ``Candidates``.
    """

    def __init__(
        self, phrases: Phrases, state: State, limits: Tensor, position: Tensor, **arguments: Any
    ):
        self._phrases = phrases
        super().__init__(position=position, **arguments)
        is_last, numbers = phrases.is_last[:, None], phrases.numbers[:, None]
        complete = _per_row(state["complete"], self.size)
        is_open = ops.logical_and(phrases.started(state, self.size), ops.logical_not(complete))
        total = ops.sum(ops.where(is_last, numbers, 0), axis=-1)
        covered = ops.sum(ops.where(ops.logical_and(is_last, complete), numbers, 0), axis=-1)
        # Of phrases that one token continues, the longest part counts.
        batch, _, slots = ops.shape(is_open)
        prefixes = ops.reshape(ops.arange(batch * self.size, dtype="int32"), (batch, -1, 1))
        columns = prefixes * self.columns + self._column[:, None, :slots]
        parts = ops.where(is_open, numbers, 0)
        parts = _segment_max(parts, columns, batch, self.size * self.columns)
        covered = covered[:, :, None] + ops.reshape(parts, (batch, self.size, self.columns))
        missing = total[:, :, None] - covered
        room = limits[:, None, None] - position - 2  # for tokens after this one, without EOS
        is_eos = ops.equal(ops.arange(self.columns), self.columns - 1)
        lacks_some = ops.logical_not(ops.all(complete, axis=-1, keepdims=True))
        forbidden = ops.where(is_eos, lacks_some, missing > room)
        forbidden = ops.logical_or(forbidden, self._is_repeated[:, None])
        self.scores = ops.where(forbidden, MIN_SCORE, self.scores)
        self._covered = ops.where(is_eos, total[:, :, None], covered)
        self._groups = slots + 1

    def best(self, with_eos: bool) -> tuple[Tensor, Tensor]:
        """Return the best ``size`` of a row in turn from each number of covered tokens."""
        columns = self.columns if with_eos else self.columns - 1
        count = self.size * columns
        scores = ops.reshape(self.scores[:, :, :columns], (-1, count))
        covered = ops.reshape(self._covered[:, :, :columns], (-1, count))
        # Sorted by score, then by group.
        order = ops.cast(ops.argsort(-scores, axis=-1), "int32")
        places = ops.arange(count, dtype="int32")
        keys = gather(covered, order) * count + places
        order = gather(order, ops.cast(ops.argsort(keys, axis=-1), "int32"))
        scores, covered = gather(scores, order), gather(covered, order)
        batch = ops.shape(covered)[0]
        groups = ops.arange(batch, dtype="int32")[:, None] * self._groups + covered
        counted = count - places + ops.zeros_like(covered)  # highest for the first of a group
        firsts = _segment_max(counted, groups, batch, self._groups)
        rank = gather(firsts, covered) - counted  # from 0, within its group
        turn = (rank + 1) * self._groups - covered
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
        every = ops.concatenate([self._phrases.tokens, super()._select_tokens(relative)], axis=1)
        # A token is a candidate once: in the column that is nearest to the end.
        columns = ops.arange(ops.shape(every)[1], dtype="int32")
        same = ops.equal(every[:, :, None], every[:, None])
        self._column = ops.max(ops.where(same, columns, 0), axis=-1)
        is_repeated = ops.not_equal(self._column, columns)
        self._is_repeated = ops.logical_or(is_repeated, ops.equal(every, PAD))
        return every


def _segment_max(values: Tensor, segments: Tensor, batch: Tensor, count: Tensor) -> Tensor:
    """Return the maximum of each of ``count`` segments of a row, at least 0, ``[batch, count]``."""
    flat = ops.reshape(values, (-1,)), ops.reshape(segments, (-1,))
    result = ops.segment_max(*flat, num_segments=batch * count)
    return ops.reshape(ops.maximum(result, 0), (batch, count))


def _per_row(values: Tensor, size: int) -> Tensor:
    """Return values ``[batch * size, slots]`` as ``[batch, size, slots]``."""
    return ops.reshape(values, (-1, size, ops.shape(values)[1]))
