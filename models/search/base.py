"""What all searches share: the hypotheses they give, and how a state follows its hypotheses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
from keras import ops

from models.vocabulary import BOS, PAD

# Below every log-probability that can occur, and far from overflow when two are added.
IMPOSSIBLE = -1e9

Step = Callable[[Any, dict[str, Any]], tuple[Any, dict[str, Any], Any]]


class Hypotheses(NamedTuple):
    """What a search found, the best first.

    Attributes:
        ids: ``[batch, hypotheses, length]``, each ending with EOS, padded with PAD.
        lengths: ``[batch, hypotheses]``, EOS counted.
        log_probabilities: ``[batch, hypotheses]``, the natural logarithm of the probability of
            the whole hypothesis, EOS included: what forced scoring of the same ids gives.
        scores: ``[batch, hypotheses]``, by which the hypotheses are ordered.
    """

    ids: Any
    lengths: Any
    log_probabilities: Any
    scores: Any


class Search:
    """Base of the searches.

    A search is called with a decoder's ``step``, the state to start from and ``limits``
    ``[batch]``, the greatest length of a row's hypotheses, EOS counted. At its limit a
    hypothesis can only end. What a row gives never depends on the other rows of its batch.
    """

    def __call__(self, step: Step, state: dict[str, Any], limits: Any) -> Hypotheses:
        raise TypeError(f"{type(self).__name__} does not say how it searches.")


def log_probabilities(logits: Any) -> Any:
    """Log-probabilities in float32, with the pieces that are never an answer ruled out.

    They are ruled out after the normalisation, so that sums stay what forced scoring gives.
    """
    logp = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    pieces = ops.arange(ops.shape(logp)[-1])
    never = ops.logical_or(ops.equal(pieces, PAD), ops.equal(pieces, BOS))
    return ops.where(never, IMPOSSIBLE, logp)


def moving(state: dict[str, Any]) -> dict[str, Any]:
    """The part of a state that has a row a hypothesis."""
    return {name: value for name, value in state.items() if name != "memory"}


def select(state: dict[str, Any], rows: Any) -> dict[str, Any]:
    """The moving part of a state for the hypotheses ``rows`` (indices into the old rows)."""
    return keras.tree.map_structure(lambda x: ops.take(x, rows, axis=0), moving(state))


def write(ids: Any, tokens: Any, position: Any) -> Any:
    """``ids`` ``[..., length]`` with ``tokens`` ``[...]`` at one position of the last axis."""
    here = ops.equal(ops.arange(ops.shape(ids)[-1]), position)
    return ops.where(here, tokens[..., None], ids)
