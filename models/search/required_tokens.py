"""Tokens that every hypothesis contains exactly once, and pairs of them that nest."""

from typing import Any

from keras import ops

from regard.models.search.base import Constraints
from regard.models.tensors import Tensor
from regard.models.vocabulary import EOS, PAD

_REPEATABLE = -2  # the state of a single that is -1 in the constraints


class RequiredTokens:
    """The required tokens of some rows, and which of them prefixes have used.

    A slot stands for the tokens of which one is required; other tokens have none. The state of
    prefixes ``[beams, slots]`` is below 0 for slots that a row does not require, 0 for those that
    are not used yet, and otherwise the position of their token, from 1.

    Args:
        constraints: with ``slots`` ``[1, vocabulary]``, the slot of each token, -1 for others;
            ``singles`` ``[batch, n]`` and ``pairs`` ``[batch, m]``, 1 for the required ones, -1
            for singles that may also follow more than once. The slots are those of singles, then
            of the first tokens of pairs, then of the last ones.
        hypotheses: the number of hypotheses per row; ``beams`` is ``batch * hypotheses``.
    """

    def __init__(self, constraints: Constraints, hypotheses: int):
        self._slots = constraints["slots"][0]
        pairs = constraints["pairs"]
        self._pairs = pairs.shape[1]
        required = ops.concatenate([constraints["singles"], pairs, pairs], axis=1)
        self._required = ops.repeat(required, hypotheses, axis=0)
        limits = constraints["limits"]
        if "phrases" in constraints:  # their tokens follow at the latest
            phrases = constraints["phrases"]
            is_token = ops.logical_and(ops.not_equal(phrases, PAD), ops.not_equal(phrases, EOS))
            limits = limits - ops.sum(ops.cast(is_token, "int32"), axis=1)
        self._limits = ops.repeat(limits, hypotheses, axis=0)

    def state(self) -> Tensor:
        """Return the state of empty prefixes."""
        return self._required - 1

    def advance(self, state: Tensor, tokens: Tensor, position: Tensor) -> Tensor:
        """Return the state after one more token of each prefix, ``[beams]``."""
        slots = ops.take(self._slots, tokens)[:, None]
        is_used = ops.equal(ops.arange(state.shape[1], dtype="int32"), slots)
        is_used = ops.logical_and(is_used, ops.equal(state, 0))
        return ops.where(is_used, position + 1, state)

    def forbidden(self, state: Tensor, position: Tensor) -> Tensor:
        """Return which tokens must not follow, ``[beams, vocabulary]``.

        A required token may follow once, the last one of a pair only if its pair is the innermost
        open one. EOS may follow all required tokens only, and these come before too few places are
        left for them.
        """
        is_open = ops.equal(state, 0)
        count = ops.sum(ops.cast(is_open, "int32"), axis=1, keepdims=True)
        firsts, lasts = state[:, -2 * self._pairs : -self._pairs], is_open[:, -self._pairs :]
        started = ops.where(ops.logical_and(lasts, firsts > 0), firsts, 0)
        innermost = ops.max(started, axis=1, keepdims=True, initial=0)
        may_end = ops.logical_and(started > 0, ops.equal(started, innermost))
        # For this token and EOS.
        has_room = count + 2 <= self._limits[:, None] - position
        has_room = ops.logical_or(has_room, ops.equal(count, 0))
        may_repeat = ops.logical_and(ops.equal(state, _REPEATABLE), has_room)
        allowed = ops.logical_or(is_open, may_repeat)[:, : -self._pairs]
        # The last column is read for tokens without a slot.
        allowed = ops.concatenate([allowed, may_end, has_room], axis=1)
        allowed = ops.take(allowed, ops.where(self._slots < 0, state.shape[1], self._slots), axis=1)
        is_eos = ops.equal(ops.arange(ops.shape(self._slots)[0], dtype="int32"), EOS)
        return ops.where(is_eos, count > 0, ops.logical_not(allowed))


def required_tokens(constraints: Any, hypotheses: int) -> RequiredTokens | None:
    """Return the required tokens of rows, None without any."""
    return RequiredTokens(constraints, hypotheses) if "singles" in constraints else None
