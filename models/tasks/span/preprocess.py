"""The preprocessing of the span task."""

from typing import Any

import tensorflow as tf

from regard.models.settings.base import Section
from regard.models.tasks.preprocessing import (
    Columns,
    Preprocessing,
    Tokenizers,
    first_values,
    single_values,
)
from regard.models.tasks.span.description import TEXTS
from regard.models.tasks.span.tokens import to_characters, tokenize
from regard.models.tasks.text_preprocessing import to_dense


class PassagePreprocessing(Preprocessing):
    """Raw rows with a ``passage``, a ``question``, and the spans that answer it."""

    def transform(
        self, inputs: Columns, tokenizers: Tokenizers, settings: Section
    ) -> dict[str, Any]:
        """Return ``passage_ids``, ``question_ids`` (ragged) and ``answer_tokens`` ``[batch, 2]``.

        All are int64; the first and the last token of the first answer are -1 if no token has a
        part of the answer.
        """
        # All texts share one tokenizer.
        tokenizer, text = tokenizers["passage"], single_values(inputs, "passage")
        passage = tokenize(tokenizer, text)
        question = tokenize(tokenizer, single_values(inputs, "question"))
        answer = first_values(inputs["answer"])
        start = tf.cast(first_values(inputs["answer_start"]), tf.int32)
        end = start + tf.strings.length(answer, "UTF8_CHAR")
        begins, ends = (to_characters(text, to_dense(part)) for part in passage[1:])
        mask = tf.sequence_mask(passage.ids.row_lengths(), tf.shape(begins)[1])
        first = tf.reduce_sum(tf.cast(mask & (ends <= start[:, None]), tf.int64), axis=1)
        last = tf.reduce_sum(tf.cast(mask & (begins < end[:, None]), tf.int64), axis=1) - 1
        span = tf.stack([first, last], axis=1)
        has_span = (first <= last) & (start >= 0) & (answer != "")
        return {
            "passage_ids": tf.cast(passage.ids, tf.int64),
            "question_ids": tf.cast(question.ids, tf.int64),
            "answer_tokens": tf.where(has_span[:, None], span, -1),
        }

    def lengths(self, features: Columns) -> tf.Tensor:
        """Return the numbers of tokens of the longer text; a row has the span of its first answer.

        A row is incomplete if its question has no token or its passage no answer.
        """
        passage, question = (features[f"{name}_ids"].row_lengths() for name in TEXTS)
        is_complete = (question > 0) & (features["answer_tokens"][:, 0] >= 0)
        return tf.where(is_complete, tf.maximum(passage, question), 0)[:, None]
