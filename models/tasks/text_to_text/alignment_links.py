"""Word alignments of rows, from a column of text to the units of tokens."""

import tensorflow as tf

from regard.models.settings.word_alignments import AlignmentLinksConfig
from regard.models.tasks.copy_tokenizer import string_tokens
from regard.models.tasks.preprocessing import Columns, Tokenizers, single_values
from regard.models.vocabulary import SPACE


def link_features(
    inputs: Columns, tokenizers: Tokenizers, settings: AlignmentLinksConfig, copies: bool
) -> dict[str, tf.RaggedTensor]:
    """Parse the links of a batch of raw rows; runs in the Transform graph.

    Args:
        inputs: The raw rows.
        tokenizers: The tokenizer of each side.
        settings: The column and the unit of the links.
        copies: Whether the ids are those of a ``CopyTokenizer``.

    Returns:
        ``links`` ``[batch, (2 * links)]``, a source and a target unit per link, and
        ``source_units`` and ``target_units`` ``[batch, (tokens)]``, the unit of each token, as the
        alignment error rate numbers them; ragged int64.
    """
    texts = single_values(inputs, settings.links)
    numbers = tf.strings.split(tf.strings.regex_replace(texts, "[-p]", " "))
    links = {"links": tf.strings.to_number(numbers, tf.int64)}
    for side in ("source", "target"):
        # Ids do not tell whether an unknown token begins a word, but its text does.
        pieces = string_tokens(tokenizers[side], single_values(inputs, side), split=copies)
        links[f"{side}_units"] = pieces.with_values(_units(pieces, settings.unit))
    return links


def _units(pieces: tf.RaggedTensor, unit: str) -> tf.Tensor:
    """Return the number of the first word, or character, of each token; int64 ``[tokens]``.

    A sign without a character has the number of the character after it. One token may be several
    unknown words.
    """
    rows, tokens = pieces.value_rowids(), pieces.values
    starts = tf.strings.substr(tokens, 0, 1, "UTF8_CHAR") == SPACE
    if unit == "word":
        # A token of adjacent unknown words has the number of the first one.
        words = tf.strings.length(tf.strings.regex_replace(tokens, f"[^{SPACE}]", ""), "UTF8_CHAR")
        counts = tf.cast(tf.cumsum(words, exclusive=True) + tf.cast(starts, tf.int32), tf.int64)
    else:
        # The sign before the first word is not a character of the text.
        is_first = tf.concat([[True], rows[1:] != rows[:-1]], 0)[: tf.size(rows)]
        lengths = tf.strings.length(tokens, "UTF8_CHAR") - tf.cast(is_first & starts, tf.int32)
        counts = tf.cumsum(tf.cast(lengths, tf.int64), exclusive=True)
    # Counts never fall: the smallest of a row is that of its first token.
    first = tf.math.unsorted_segment_min(counts, rows, pieces.nrows())
    return counts - tf.gather(first, rows)
