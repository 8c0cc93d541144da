"""The preprocessing of texts: operations of the graph, and the texts that a model learns to write.

The exported graph uses the same operations.
"""

from typing import Any

import tensorflow as tf

from regard.core.characters import BLANK
from regard.models.tasks.preprocessing import Columns, Preprocessing, Tokenizers, to_ragged
from regard.models.vocabulary import PAD

# The longest piece of SentencePiece has 16 characters. What exceeds this number for each token is
# cut before tokenization: SentencePiece joins a run of unknown characters in quadratic time.
MAX_TOKEN_CHARACTERS = 32


class TextOutputPreprocessing(Preprocessing):
    """The preprocessing of a task whose outputs are texts; a row may have several references."""

    def target_features(self, inputs: Columns, tokenizers: Tokenizers) -> dict[str, Any]:
        """Tokenize all references of each row.

        Returns:
            ``<reference>_ids`` ``[batch, (tokens of all texts)]`` and ``<reference>_lengths``
            ``[batch, (texts)]``, ragged int64.
        """
        name = self.description.reference.name
        texts = to_ragged(inputs[name])
        tokens = tf.cast(tokenizers[name].tokenize(texts.values), tf.int64)
        # The rows' boundaries among all texts, and with them among all tokens.
        splits = texts.row_splits
        ends = tf.gather(tokens.row_splits, splits)
        return {
            f"{name}_ids": tf.RaggedTensor.from_row_splits(tokens.values, ends),
            f"{name}_lengths": tf.RaggedTensor.from_row_splits(tokens.row_lengths(), splits),
        }

    def text_lengths(self, features: Columns, sources: tf.Tensor | int = 1) -> tf.RaggedTensor:
        """Return the lengths of training rows by their texts, including EOS.

        Args:
            features: A batch of transformed rows.
            sources: The lengths of the sources, ``[batch]``, of which the longer side counts.
        """
        targets = features[f"{self.description.reference.name}_lengths"]
        rows = targets.value_rowids()
        sources = tf.gather(tf.broadcast_to(sources, [targets.nrows()]), rows)
        longest = tf.maximum(tf.cast(sources, tf.int64), targets.values) + 1
        return targets.with_values(tf.where((sources > 0) & (targets.values > 0), longest, 0))


def to_dense(tokens: tf.RaggedTensor) -> tf.Tensor:
    """Return ``[batch, tokens]`` with at least one column: a loop without steps has no outputs."""
    dense = tokens.to_tensor(PAD)
    missing = tf.cast(tf.shape(dense)[1] == 0, tf.int32)
    return tf.pad(dense, [[0, 0], [0, missing]], constant_values=PAD)


def limit_characters(texts: tf.Tensor, tokens: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Return texts ``[batch]`` without what more than ``tokens`` tokens cannot hold.

    The second output ``[batch]``, int32, is 1 for each text of which more than spaces was cut,
    otherwise 0.
    """
    most = MAX_TOKEN_CHARACTERS * tokens
    # First by bytes: bytes that are not UTF-8 do not count as characters.
    shortened = tf.strings.substr(tf.strings.substr(texts, 0, 4 * most), 0, most, "UTF8_CHAR")
    rest = tf.strings.substr(texts, tf.strings.length(shortened), tf.strings.length(texts))
    return shortened, tf.cast(~tf.strings.regex_full_match(rest, r"\s*"), tf.int32)


def is_blank(texts: tf.Tensor) -> tf.Tensor:
    """Return which texts have no visible character, see ``characters.is_blank``."""
    # Bytes that are not UTF-8 become U+FFFD, as in the tokenizer.
    return tf.strings.regex_full_match(tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8"), BLANK)
