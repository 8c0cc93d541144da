"""The interface of all searches, and what they do with a decoder's state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypedDict

from keras import ops

from regard.models.search.decode_loop import take_rows
from regard.models.tensors import State, Tensor
from regard.models.vocabulary import BOS, PAD

# Below every possible log-probability, and far from overflow when two are added.
MIN_SCORE = -1e9

Step: TypeAlias = Callable[[Tensor, State], tuple[Tensor, State, Tensor]]


class Constraints(TypedDict, total=False):
    """The constraints of the rows as int32 tensors; see ``Search.__call__``."""

    limits: Tensor
    minimums: Tensor
    prefix: Tensor
    phrases: Tensor
    slots: Tensor
    singles: Tensor
    pairs: Tensor


class RowInputs(TypedDict):
    """The constant tensors of the rows, ``[batch, ...]``."""

    memory: State
    constraints: Constraints
    keys: Tensor
    first: Tensor


class Hypotheses(NamedTuple):
    """The result of a search, best hypothesis first.

    Attributes:
        ids: ``[batch, hypotheses, length]``; each ends with EOS and is padded with PAD.
        lengths: ``[batch, hypotheses]``, including EOS; 0 where a row has fewer hypotheses.
        log_probabilities: ``[batch, hypotheses]``, the natural logarithm of the probability that
            the model assigns to the whole hypothesis including EOS, without any penalty. Forced
            scoring of the same ids gives the same value.
        scores: ``[batch, hypotheses]``, the values by which the hypotheses are sorted.
    """

    ids: Tensor
    lengths: Tensor
    log_probabilities: Tensor
    scores: Tensor


class Search:
    """Base class of the searches. Call an instance to search.

    The result of a row never depends on the other rows of its batch.

    Attributes:
        hypotheses: the number of hypotheses per row.
        beam_width: the number of hypotheses of a row that share one cache (``Decoder.start``).
    """

    hypotheses: int = 1
    beam_width: int = 1

    def best(self) -> Search:
        """Return a search for the best hypothesis only, which may do less work."""
        return self

    def __call__(
        self,
        step: Step,
        state: State,
        limits: Tensor,
        *,
        minimums: Tensor = None,
        prefix: Tensor = None,
        phrases: Tensor = None,
        slots: Tensor = None,
        singles: Tensor = None,
        pairs: Tensor = None,
        keys: Tensor = None,
        first: Tensor = None,
        longest: int | None = None,
    ) -> Hypotheses:
        """Search hypotheses for every row.

        Args:
            step: the decoder's ``step``.
            state: the decoder's state before its first token.
            limits: ``[batch]``, the maximum length including EOS. A hypothesis that reaches it
                must end there, whatever the other constraints are.
            minimums: ``[batch]``, the minimum length including EOS.
            prefix: ``[batch, prefix]``, the first tokens of every hypothesis, padded with PAD.
            phrases: ``[batch, slots]``, the tokens of phrases that every hypothesis contains, with
                EOS after each phrase, padded with PAD; only for a beam search. The limits must have
                room for them.
            slots: ``[1, vocabulary]``, the slot of each token, -1 for tokens without one. Tokens
                with a slot only follow if a row requires them.
            singles: ``[batch, n]``, 1 for each slot of which every hypothesis contains exactly one
                token; needs ``slots`` and ``pairs``. The limits must have room for them.
            pairs: ``[batch, m]``, 1 for each pair of slots whose tokens every hypothesis contains,
                nested; see ``RequiredTokens``.
            keys: ``[batch]`` integers. A search that samples draws the same tokens for rows with
                the same key, in any batch. The default is the row number.
            first: ``[batch]``, the tokens that the decoder reads first, by default BOS.
            longest: at least the largest of the limits. A function that JAX compiles must give
                it, since it is the size of arrays; elsewhere it is computed.

        Returns:
            The hypotheses, best first.
        """
        keys = ops.arange(ops.shape(limits)[0]) if keys is None else keys
        values = {"limits": limits, "minimums": minimums, "prefix": prefix, "phrases": phrases}
        values |= {"slots": slots, "singles": singles, "pairs": pairs}
        constraints: Any = {n: ops.cast(x, "int32") for n, x in values.items() if x is not None}
        first = ops.full_like(limits, BOS) if first is None else first
        inputs: RowInputs = {
            "memory": state["memory"],
            "constraints": constraints,
            "keys": ops.cast(keys, "int32"),
            "first": ops.cast(first, "int32"),
        }
        return self.run(step, state, inputs, longest_limit(limits) if longest is None else longest)

    def run(self, step: Step, state: State, inputs: RowInputs, longest: Tensor) -> Hypotheses:
        """Search with the constant tensors of the rows; called by ``__call__``.

        Args:
            step: the decoder's ``step``.
            state: the decoder's state before its first token.
            inputs: the constant tensors of the rows.
            longest: the largest of their limits.
        """
        raise TypeError(f"{type(self).__name__} does not implement run.")


def longest_limit(limits: Tensor) -> Tensor:
    """Return the largest of the limits ``[batch]``; 1 without rows."""
    return ops.max(limits, initial=1)


def beam_state(state: State) -> State:
    """Return the part of a decoder's state that has one row per hypothesis."""
    return {name: value for name, value in state.items() if name not in ("memory", "shared_cache")}


def shared_cache(state: State) -> State:
    """Return the part of a decoder's state that changes but is never reordered by a search."""
    return state.get("shared_cache", {})


def first_state(step: Step, state: State, limits: Tensor, hypotheses: int) -> State:
    """Return the state of a decoder that has read BOS, still one for each row.

    Args:
        step: the decoder's ``step``.
        state: the state before the first token.
        limits: a tensor ``[batch]``.
        hypotheses: the number of hypotheses that share the cache of a row.
    """
    rows = ops.shape(limits)[0]
    beams = tile_beams(beam_state(state), rows, hypotheses)
    tokens = ops.repeat(ops.full_like(ops.cast(limits, "int32"), BOS), hypotheses)
    _, new_state, _ = step(tokens, {**state, **beams})
    first_beams = ops.arange(rows) * hypotheses
    return {**new_state, **take_rows(beam_state(new_state), first_beams)}


def tile_beams(state: State, batch: Tensor, hypotheses: int) -> State:
    """Repeat each of the ``batch`` rows of a state for ``hypotheses`` hypotheses."""
    if hypotheses == 1:
        return state
    return take_rows(state, ops.repeat(ops.arange(batch), hypotheses))


def set_tokens(ids: Tensor, tokens: Tensor, position: Tensor) -> Tensor:
    """Return ``ids`` ``[..., length]`` with ``tokens`` ``[..., 1]`` at one position."""
    is_position = ops.equal(ops.arange(ops.shape(ids)[-1]), position)
    return ops.where(is_position, tokens, ids)


def count_tokens(ids: Tensor) -> Tensor:
    """Return the number of tokens before the padding of ``ids`` ``[..., length]``."""
    return ops.sum(ops.cast(ops.not_equal(ids, PAD), "int32"), axis=-1)
