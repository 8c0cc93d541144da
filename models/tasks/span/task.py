"""Preprocessing, model and training interface of the span task."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from regard.models.encoders import create_encoder
from regard.models.layers.answer_pointer import best_spans
from regard.models.settings.base import Section
from regard.models.settings.training import TrainingConfig
from regard.models.span import SpanReader
from regard.models.tasks.base import Columns, DecodeFn, Task, Tokenizers, dtype_policy, flat_values
from regard.models.tasks.search_outputs import to_dense
from regard.models.tasks.served_model import with_signature
from regard.models.tasks.span.served import ServedSpan, to_characters, tokenize
from regard.models.tasks.span.settings import SpanModelConfig

_TEXTS = ("passage", "question")


class SpanReading(Task):
    """A passage, a question, and the span of the passage that answers it."""

    served = ServedSpan

    def preprocess(
        self, inputs: Columns, tokenizers: Tokenizers, settings: Section
    ) -> dict[str, Any]:
        """Return ``passage_ids``, ``question_ids`` (ragged) and ``answer_tokens`` ``[batch, 2]``.

        All are int64; the first and the last token of the first answer are -1 if no token has a
        part of the answer.
        """
        # All texts share one tokenizer.
        tokenizer, text = tokenizers["passage"], flat_values(inputs["passage"])
        passage = tokenize(tokenizer, text)
        question = tokenize(tokenizer, flat_values(inputs["question"]))
        answer = _first_value(inputs["answer"])
        start = tf.cast(_first_value(inputs["answer_start"]), tf.int32)
        end = start + tf.strings.length(answer, "UTF8_CHAR")
        begins, ends = (to_characters(text, to_dense(part)) for part in passage[1:])
        mask = tf.sequence_mask(passage.ids.row_lengths(), tf.shape(begins)[1])
        first = tf.reduce_sum(tf.cast(mask & (ends <= start[:, None]), tf.int64), axis=1)
        last = tf.reduce_sum(tf.cast(mask & (begins < end[:, None]), tf.int64), axis=1) - 1
        span = tf.stack([first, last], axis=1)
        return {
            "passage_ids": tf.cast(passage.ids, tf.int64),
            "question_ids": tf.cast(question.ids, tf.int64),
            "answer_tokens": tf.where((first <= last)[:, None], span, -1),
        }

    def lengths(self, features: Columns) -> tf.Tensor:
        """Return the numbers of tokens of the longer text; a row has the span of its first answer.

        A row is incomplete if its question has no token or its passage no answer.
        """
        passage, question = (features[f"{name}_ids"].row_lengths() for name in _TEXTS)
        is_complete = (question > 0) & (features["answer_tokens"][:, 0] >= 0)
        return tf.where(is_complete, tf.maximum(passage, question), 0)[:, None]

    def model_inputs(self, features: Columns) -> dict[str, tf.Tensor]:
        """Return ``passage``, ``question`` and the two tokens ``answer`` as int32."""
        ids = {name: tf.cast(features[f"{name}_ids"], tf.int32).to_tensor() for name in _TEXTS}
        return {**ids, "answer": tf.cast(features["answer_tokens"], tf.int32)}

    def raw_inputs(self, features: Columns, tokenizers: Tokenizers) -> dict[str, Any]:
        ids = (tf.cast(features[f"{name}_ids"], tf.int32) for name in _TEXTS)
        texts = (tokenizers["passage"].detokenize(one).numpy() for one in ids)
        return dict(zip(_TEXTS, texts, strict=True))

    def build(
        self, model: SpanModelConfig, training: TrainingConfig, vocabulary_sizes: Mapping[str, int]
    ) -> SpanReader:
        policy = dtype_policy(training)
        common = {"embedding": model.embedding, "dropout": model.dropout, "dtype": policy}
        encoder = create_encoder(
            model.encoder,
            vocabulary_sizes["passage"],
            # Pretrained vectors already have the right size, and learn slowly.
            scale=not model.pretrained,
            **common,
        )
        modelling = create_encoder(model.modelling, None, dimensions=4 * encoder.depth, **common)
        reader = SpanReader(
            encoder, modelling, **model.pointer.to_kwargs(), dropout=model.dropout, dtype=policy
        )
        reader.build()
        return reader

    def embeddings(self, model: SpanReader, key: str) -> tuple[Any, str]:
        return model.encoder.embedding, "passage"

    def vocab_weights(self, model: SpanReader) -> list[tuple[Any, int, str]]:
        return [(model.encoder.embedding.table, 0, "passage")]

    def decode_fn(
        self, model: SpanReader, tokenizers: Tokenizers, settings: SpanModelConfig, search: None
    ) -> DecodeFn:
        tokenizer, ids = tokenizers["passage"], tf.TensorSpec([None, None], tf.int32)

        @with_signature([ids, ids])
        def find(passage: tf.Tensor, question: tf.Tensor) -> tf.Tensor:
            logits = model({"passage": passage, "question": question})["logits"]
            log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float32))
            spans = best_spans(log_probs[:, -2], log_probs[:, -1], settings.max_answer_tokens)
            return tf.concat(spans[:2], axis=1)

        def texts(passage: tf.Tensor, spans: tf.Tensor) -> list[str]:
            rows = zip(passage.numpy(), spans.numpy(), strict=True)
            tokens = tf.ragged.constant([row[i : j + 1] for row, (i, j) in rows], tf.int32)
            return [text.decode() for text in tokenizer.detokenize(tokens).numpy()]

        def decode(batch: Mapping[str, tf.Tensor]) -> tuple[list[str], list[list[str]]]:
            passage = batch["passage"]
            answers = texts(passage, find(passage, batch["question"]))
            return answers, [[text] for text in texts(passage, batch["answer"])]

        return decode


def _first_value(column: Any) -> tf.Tensor:
    """Return the first value of each row of a dense or sparse raw feature, ``[batch]``."""
    if isinstance(column, tf.SparseTensor):
        default = "" if column.dtype == tf.string else -1
        column = tf.sparse.to_dense(tf.sparse.slice(column, [0, 0], [tf.int64.max, 1]), default)
    return tf.reshape(column[:, 0], [-1])
