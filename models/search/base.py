"""What all searches share: how they are asked, what they give, how a state follows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from models.search.rows import select
from models.vocabulary import PAD

# Below every log-probability that can occur, and far from overflow when two are added.
IMPOSSIBLE = -1e9

Step = Callable[[Any, dict[str, Any]], tuple[Any, dict[str, Any], Any]]


class Hypotheses(NamedTuple):
    """What a search found, the best first.

    Attributes:
        ids: ``[batch, hypotheses, length]``, each ending with EOS, padded with PAD.
        lengths: ``[batch, hypotheses]``, EOS counted; 0 where a row has no further hypothesis.
        log_probabilities: ``[batch, hypotheses]``, the natural logarithm of the probability that
            the model gives to the whole hypothesis, EOS included, whatever penalties there are:
            what forced scoring of the same ids gives.
        scores: ``[batch, hypotheses]``, by which the hypotheses are ordered.
    """

    ids: Any
    lengths: Any
    log_probabilities: Any
    scores: Any


class Search:
    """Base of the searches: called, they look for hypotheses.

    What a row gives never depends on the other rows of its batch.

    Attributes:
        hypotheses: how many a row gets.
        together: how many of a row may go on from one another (see ``Decoder.start``).
    """

    hypotheses: int = 1
    together: int = 1

    def best(self) -> Search:
        """A search for the first hypothesis of this one alone, with less work if there is such."""
        return self

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
        """Hypotheses for every row.

        Args:
            step: a decoder's.
            state: the decoder's before its first token.
            limits: ``[batch]``, the greatest length of a row's hypotheses, EOS counted: at its
                limit a hypothesis can only end, whatever else is asked.
            minimums: ``[batch]``, the least length, EOS counted.
            prefix: ``[batch, prefix]``, the pieces that hypotheses begin with, padded with PAD.
            keys: ``[batch]`` integers; where pieces are drawn at random, rows of one key draw
                alike, in whatever batch. By default the number of the row.
        """
        raise TypeError(f"{type(self).__name__} does not say how it searches.")


def moving(state: dict[str, Any]) -> dict[str, Any]:
    """The part of a state that has a row a hypothesis."""
    return {name: value for name, value in state.items() if name not in ("memory", "written")}


def unmoved(state: dict[str, Any]) -> Any:
    """The part of a state that changes, but that no search reorders."""
    return state.get("written", {})


def spread(state: Any, batch: Any, hypotheses: int) -> Any:
    """A moving state of ``batch`` rows with every row ``hypotheses`` times."""
    if hypotheses == 1:
        return state
    return select(state, ops.repeat(ops.arange(batch), hypotheses))


def write(ids: Any, tokens: Any, position: Any) -> Any:
    """``ids`` ``[..., length]`` with ``tokens`` ``[..., 1]`` at one position of the last axis."""
    here = ops.equal(ops.arange(ops.shape(ids)[-1]), position)
    return ops.where(here, tokens, ids)


def lengths_of(ids: Any) -> Any:
    """How many pieces ``ids`` ``[..., length]`` have before their padding."""
    return ops.sum(ops.cast(ops.not_equal(ids, PAD), "int32"), axis=-1)
