"""What a search is told and what it found, as the signatures of served models give it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import tensorflow as tf

from models.search import SEARCHES, Hypotheses, Search
from models.serialization import by_name

# The settings that every search has beside its own, with their defaults.
LIMITS: Mapping[str, Any] = MappingProxyType(
    {
        "max_length_factor": 2.0,
        "max_length_offset": 10,
        "min_length_factor": 0.0,
        "max_source_length": 256,
        "long_source": "truncate",
    }
)


def search_of(settings: Mapping[str, Any]) -> tuple[Search, dict[str, Any]]:
    """The search of the YAML's section ``search``, and its limits.

    Raises:
        ValueError: there is no such search, or no such way to treat long sources.
    """
    own = dict(settings)
    limits = {name: own.pop(name, default) for name, default in LIMITS.items()}
    if limits["long_source"] not in ("truncate", "refuse"):
        raise ValueError(
            f"Unknown long_source {limits['long_source']!r}. Choices: refuse, truncate."
        )
    return by_name("search", SEARCHES, own.pop("type"))(**own), limits


def best(tokenizer: Any, found: Hypotheses, answer: str) -> dict[str, tf.Tensor]:
    """The best text of each row as ``answer``, and the logarithm of its probability as ``score``.

    Both are ``[batch]``.
    """
    return {
        answer: _texts(tokenizer, found.ids[:, 0], found.lengths[:, 0]),
        "score": found.log_probabilities[:, 0],
    }


def n_best(tokenizer: Any, found: Hypotheses, answers: str) -> dict[str, tf.Tensor]:
    """All texts that were found, each ``[batch, n]``, the best first.

    ``answers``, their ``log_probabilities``, and the ``scores`` by which they are ordered. Where
    there are fewer than n the rest is empty, with impossible scores.
    """
    shape = tf.shape(found.lengths)
    ids = tf.reshape(found.ids, [shape[0] * shape[1], tf.shape(found.ids)[2]])
    texts = _texts(tokenizer, ids, tf.reshape(found.lengths, [-1]))
    return {
        answers: tf.reshape(texts, shape),
        "log_probabilities": found.log_probabilities,
        "scores": found.scores,
    }


def _texts(tokenizer: Any, ids: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    pieces = tf.RaggedTensor.from_tensor(ids, lengths=tf.maximum(lengths - 1, 0))
    return tokenizer.detokenize(pieces)
