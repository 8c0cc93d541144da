"""Prediction of long texts sentence by sentence, in an exported graph."""

from collections.abc import Callable

import tensorflow as tf

from regard.models.tasks.text_preprocessing import is_blank, limit_characters

# The output with the number of sentences of each text. A model without it does not split texts.
SENTENCES = "sentences"
# More would let one small request take the memory of a large one: every sentence is a row.
MAX_SENTENCES = 64
_MARK = "\x1e"  # the record separator of ASCII, between sentences
_SPACE = r"[\s\pZ]"
# The end of a sentence, and the space after it. A period does not end a sentence after a single
# letter, after up to two digits, or inside of an abbreviation such as "e.g.".
_ENDS = (
    r"""((?:(?:[\pL\pM][\pL\pM\pN]|\pN{3}|[^\s\pL\pM\pN.])\.|\.\.|[!?…؟।۔])["'”’»)\]]*)(\s)""",
    r"""([。！？｡]+["'”’」』）】]*)()""",  # of scripts without spaces
)
Predict = Callable[[tf.Tensor], dict[str, tf.Tensor]]


def predict_by_sentence(
    predict: Predict, texts: tf.Tensor, is_long: tf.Tensor, limit: int, cut: str
) -> dict[str, tf.Tensor]:
    """Predict long texts sentence by sentence, in one batch with all other texts.

    Args:
        predict: Returns the outputs of texts, each ``[batch]``.
        texts: ``[batch]``.
        is_long: Which texts to split, ``[batch]``; a blank one is not.
        limit: The maximum number of tokens of a sentence.
        cut: The output with the number of truncated tokens.

    Returns:
        The outputs, each ``[batch]``: texts are joined, with a space where the source has one, and
        numbers are added up. ``sentences`` is the number of sentences. After ``MAX_SENTENCES - 1``
        sentences, the rest of a text is the last one.
    """
    shortened, is_cut = limit_characters(tf.where(is_long, texts, "-"), limit * MAX_SENTENCES)
    # A text of which only blank sentences remain is not split, and its output is empty.
    is_long &= ~is_blank(shortened)
    shortened = tf.where(is_long, shortened, "-")
    marked = tf.strings.regex_replace(shortened, _MARK, "\ufffd")
    for pattern in _ENDS:
        marked = tf.strings.regex_replace(marked, pattern, rf"\1{_MARK}\2")
    parts = tf.strings.split(marked, _MARK, MAX_SENTENCES - 1)
    parts = parts.with_values(tf.strings.regex_replace(parts.values, _MARK, ""))
    parts = tf.ragged.boolean_mask(parts, parts.with_values(~is_blank(parts.values)))
    rows, count = parts.value_rowids(), tf.size(texts)
    # Not a match of the whole sentence, which can have bytes that are not UTF-8.
    has_space = tf.strings.regex_replace(parts.values, f"^{_SPACE}", "") != parts.values
    is_first = tf.range(tf.size(rows, tf.int64)) == tf.gather(parts.row_starts(), rows)
    sentences = tf.strings.regex_replace(parts.values, rf"^{_SPACE}+|{_SPACE}+$", "")
    sentences = tf.where(tf.gather(is_long, rows), sentences, tf.gather(texts, rows))
    spaces = tf.where(has_space & ~is_first, " ", "")
    outputs = {
        name: tf.strings.unsorted_segment_join(spaces + value, rows, count)
        if value.dtype == tf.string
        else tf.math.unsorted_segment_sum(value, rows, count)
        for name, value in predict(sentences).items()
    }
    lengths = tf.cast(parts.row_lengths(), tf.int32)
    return {**outputs, cut: outputs[cut] + is_cut, SENTENCES: lengths}
