"""Outputs of signatures that search, score or tokenize texts."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from regard.models.search import SEARCHES, Hypotheses, Search
from regard.models.seq2seq import Seq2Seq
from regard.models.settings.search import BeamSearchConfig, SearchLimits
from regard.models.tasks.text_preprocessing import limit_characters, to_dense
from regard.models.vocabulary import EOS

# The maximum number of weights in one output (half a gigabyte): it grows with the square of the
# lengths, for every head.
MAX_WEIGHTS = 2**27
N_BEST: dict[str, list[str | None]] = {
    name: [None] for name in ("hypotheses", "lengths", "log_probabilities", "scores")
}


def create_search(config: SearchLimits) -> Search:
    """Return the search of the section ``search``."""
    options = config.model_dump(mode="json", exclude=set(SearchLimits.model_fields))
    if isinstance(config, BeamSearchConfig):
        options["patience"] = config.effective_patience
    return SEARCHES[options.pop("type")](**options)


def n_best(tokenizer: Any, hypotheses: Hypotheses) -> dict[str, tf.Tensor]:
    """Return all texts of a search, the best first, each output ``[batch, n]``.

    ``hypotheses``, their ``lengths`` in tokens with EOS, their ``log_probabilities``, and the
    ``scores`` by which they are sorted. Missing hypotheses are empty, with impossible scores.
    """
    shape = tf.shape(hypotheses.lengths)
    ids = tf.reshape(hypotheses.ids, [shape[0] * shape[1], tf.shape(hypotheses.ids)[2]])
    texts = to_texts(tokenizer, ids, tf.reshape(hypotheses.lengths, [-1]))
    return {
        "hypotheses": tf.reshape(texts, shape),
        "lengths": hypotheses.lengths,
        "log_probabilities": hypotheses.log_probabilities,
        "scores": hypotheses.scores,
    }


def token_ids(
    tokenizer: Any, texts: tf.Tensor, limit: int, error: str | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Tokenize texts.

    Args:
        tokenizer: The tokenizer of the texts (``tensorflow_text``).
        texts: UTF-8, ``[batch]``.
        limit: The maximum number of tokens, without EOS; of ``MAX_TOKEN_CHARACTERS`` each.
        error: The message for longer texts, which are then rejected; None: they are truncated.

    Returns:
        The ids ``[batch, length]``, int32, with EOS and padding, and the number of truncated tokens
        ``[batch]``. Of a text with more than ``MAX_TOKEN_CHARACTERS`` characters for each token of
        the limit, see ``text_preprocessing``, it is a lower bound, at least 1: the rest is not
        tokenized.

    Raises:
        InvalidArgumentError: A text is too long, and ``error`` is given.
    """
    shortened, is_shortened = limit_characters(texts, limit)
    ids = tf.cast(tokenizer.tokenize(shortened), tf.int32)
    lengths = tf.cast(ids.row_lengths(), tf.int32)
    cut = tf.maximum(lengths - limit, is_shortened)
    if error is not None:
        message = f"{error}; the lengths of all that were sent:"
        check = tf.debugging.Assert(tf.reduce_all(cut == 0), [message, lengths], summarize=20)
        with tf.control_dependencies([check]):
            cut = tf.identity(cut)
            ids = ids.with_values(tf.identity(ids.values))
    else:
        ids = ids[:, :limit]
    ends = tf.fill([tf.shape(texts)[0], 1], EOS)
    return to_dense(tf.concat([ids, ends], axis=1)), cut


def to_texts(tokenizer: Any, ids: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Return ids ``[batch, length]`` as texts ``[batch]``; the lengths include EOS."""
    tokens = tf.RaggedTensor.from_tensor(ids, lengths=tf.maximum(lengths - 1, 0))
    return tokenizer.detokenize(tokens)


def head_outputs(
    model: Seq2Seq, source: tf.Tensor, target: tf.Tensor, masks: Mapping[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
    """Return the weights of ``Seq2Seq.heads`` as ``<name>_heads``, in float32.

    Args:
        model: The trained model.
        source: The inputs of the model.
        target: The ids of the given output, ``[batch, target]``.
        masks: By name, which rows are not padding, ``[batch, length]``; padding rows are 0.

    Raises:
        InvalidArgumentError: There would be more than ``MAX_WEIGHTS`` numbers.
    """
    return {
        f"{name}_heads": _check_size(tf.cast(weights, tf.float32))
        * tf.cast(masks[name], tf.float32)[:, None, None, :, None]
        for name, weights in model.heads(source, target).items()
    }


def _check_size(weights: tf.Tensor) -> tf.Tensor:
    size = tf.size(weights, tf.int64)
    message = [f"more than {MAX_WEIGHTS:,} weights; send fewer or shorter rows. They are:", size]
    with tf.control_dependencies([tf.debugging.Assert(size <= MAX_WEIGHTS, message)]):
        return tf.identity(weights)
