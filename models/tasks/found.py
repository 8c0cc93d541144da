"""What a search is told, what it found, and what an answer is given: in signatures' outputs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import tensorflow as tf

from models.search import SEARCHES, Hypotheses, Search
from models.seq2seq import Seq2Seq
from models.serialization import by_name
from models.tasks.pieces import counts, read_pieces

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
# What the outputs of the signatures for texts are as long as; see ``Served``.
N_BEST: Mapping[str, list[str | None]] = MappingProxyType(
    {"hypotheses": [None], "lengths": [None], "log_probabilities": [None], "scores": [None]}
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


def n_best(tokenizer: Any, found: Hypotheses) -> dict[str, tf.Tensor]:
    """All texts that were found, each ``[batch, n]``, the best first.

    ``hypotheses``, their ``lengths`` in pieces, EOS counted, their ``log_probabilities``, and the
    ``scores`` by which they are ordered. Where there are fewer than n the rest is empty, with
    impossible scores.
    """
    shape = tf.shape(found.lengths)
    ids = tf.reshape(found.ids, [shape[0] * shape[1], tf.shape(found.ids)[2]])
    texts = _texts(tokenizer, ids, tf.reshape(found.lengths, [-1]))
    return {
        "hypotheses": tf.reshape(texts, shape),
        "lengths": found.lengths,
        "log_probabilities": found.log_probabilities,
        "scores": found.scores,
    }


def scored_as(pieces: str) -> dict[str, list[str | None]]:
    """What the outputs of ``scored`` are as long as, where its pieces are called so."""
    side = pieces.removesuffix("pieces")
    length = f"{side}length"
    return {
        "score": [],
        pieces: [length],
        f"{side}scores": [length],
        length: [],
        f"{side}cut": [],
    }


def scored(
    model: Seq2Seq, tokenizer: Any, source: tf.Tensor, texts: tf.Tensor, longest: int, pieces: str
) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """How probable the model finds given texts, the end of each counted.

    Args:
        model: the trained model.
        tokenizer: of the texts.
        source: what the model reads, a row a text.
        texts: ``[batch]``.
        longest: the most pieces that an answer can have; what is behind them is not read.
        pieces: what the output with the pieces is called: ``target_pieces`` or ``pieces``.

    Returns:
        By the names of ``scored_as``: ``score`` ``[batch]``, the natural logarithm of the
        probability; the pieces, and the logarithm of each one's own probability, ``[batch,
        pieces]``; their number, and how many more there were, ``[batch]``. And where the model
        looked for each piece, ``[batch, pieces, source]``.
    """
    ids, cut = read_pieces(tokenizer, texts, longest)
    scores, looks = model.forced(source, ids)
    scores = tf.cast(scores, tf.float32)
    values = tf.reduce_sum(scores, axis=1), tokenizer.id_to_string(ids), scores, counts(ids), cut
    return dict(zip(scored_as(pieces), values, strict=True)), looks


def _texts(tokenizer: Any, ids: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    pieces = tf.RaggedTensor.from_tensor(ids, lengths=tf.maximum(lengths - 1, 0))
    return tokenizer.detokenize(pieces)
