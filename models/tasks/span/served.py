"""The exported graph of the span task."""

import math
from typing import Any

import numpy as np
import tensorflow as tf

from regard.models.attention.alignments.base import MASKED
from regard.models.layers.answer_pointer import best_spans
from regard.models.span import SpanReader
from regard.models.tasks.search_outputs import N_BEST
from regard.models.tasks.served_model import (
    ExportedSignature,
    OutputLengths,
    Row,
    ServedModule,
)
from regard.models.tasks.span.tokens import Tokens, to_characters, tokenize
from regard.models.tasks.text_preprocessing import is_blank, limit_characters, to_dense
from regard.models.vocabulary import PAD

_ANSWERS = 20  # of the signature nbest


class ServedSpan(ServedModule):
    """Tokenizer, model and search for the best span in one graph, as TensorFlow Serving runs it."""

    tokenizer_names = ("passage",)
    _model: SpanReader

    def signatures(self) -> dict[str, ExportedSignature]:
        """Return the signatures."""
        best: OutputLengths = {"answer": [], "begin": [], "end": [], "score": []}
        detail: OutputLengths = {
            **best,
            "passage_length": [],
            **{f"passage_{name}": ["passage_length"] for name in ("pieces", "begins", "ends")},
            "steps": [None],
            "alignment": [None, "passage_length"],
            "cut": [],
        }
        return {
            "serving_default": ExportedSignature(self.predict, self._inputs, best),
            "align": ExportedSignature(self.align, self._inputs, detail),
            "nbest": ExportedSignature(
                self.n_best, self._inputs, {**N_BEST, "begins": [None], "ends": [None]}
            ),
        }

    def contract(self) -> dict[str, Any]:
        return {
            "scored": None,
            "size": {"output": "passage_length", "minus": 0, "unit": "tokens of the passage"},
            "looks": {"rows": "steps", "columns": "passage_pieces", "weights": "alignment"},
            "cut": "cut",
        }

    def raw_inputs(self, row: Row) -> dict[str, Any]:
        names = [entry["name"] for entry in self._inputs]
        return {name: self._detokenize([row[f"{name}_ids"]])[0] for name in names}

    def _detokenize(self, rows: list[np.ndarray]) -> list[bytes]:
        """Return the texts of tokens; each row has its own number of them."""
        ids = tf.ragged.constant([row.tolist() for row in rows], tf.int32, ragged_rank=1)
        return self.tokenizers["passage"].detokenize(ids).numpy().tolist()

    def predict(self, passage: tf.Tensor, question: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the best answer of each row; passages and questions are ``[batch]``.

        ``answer`` is the text of the passage from character ``begin`` to before ``end``, and
        ``score`` the natural logarithm of its probability. A blank passage or question has an
        empty answer with the score NaN.
        """
        return _best(self._answers(passage, question)[0])

    def n_best(self, passage: tf.Tensor, question: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the 20 most probable answers of each row, ``[batch, answers]``, the best first.

        ``hypotheses`` are like ``answer``, ``begins`` and ``ends`` like ``begin`` and ``end``,
        ``log_probabilities`` and ``scores`` like ``score``; ``lengths`` are in tokens. Missing
        answers are empty, with impossible scores.
        """
        spans = self._answers(passage, question, _ANSWERS)[0]
        names = {"hypotheses": "answer", "begins": "begin", "ends": "end", "lengths": "length"}
        names |= {"log_probabilities": "score", "scores": "score"}
        return {name: spans[key] for name, key in names.items()}

    def align(self, passage: tf.Tensor, question: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the outputs of ``predict``, and the attention behind it.

        ``passage_pieces`` are the texts of the ``passage_length`` tokens, ``passage_begins`` and
        ``passage_ends`` their offsets in characters. Each row of ``alignment`` ``[batch, steps,
        passage]`` is the attention of one of the ``steps``: the hops, the begin and the end.
        ``cut`` is the number of truncated tokens of both texts, see ``search_outputs.token_ids``.
        """
        spans, passages, log_probs, cut = self._answers(passage, question)
        begins, ends = to_dense(passages.begins), to_dense(passages.ends)
        # The offsets of a whole passage would take memory for all rows.
        passage, _ = limit_characters(passage, self._settings.max_length)
        pieces = tf.strings.substr(passage[:, None], begins, ends - begins)
        steps = log_probs.shape[1]
        names = [*(f"hop {i}" for i in range(1, steps - 1)), "begin", "end"]
        return {
            **_best(spans),
            "passage_length": tf.cast(passages.ids.row_lengths(), tf.int32),
            "passage_pieces": pieces,
            "passage_begins": to_characters(passage, begins),
            "passage_ends": to_characters(passage, ends),
            "steps": tf.tile([names], [tf.shape(begins)[0], 1]),
            "alignment": tf.exp(log_probs),
            "cut": cut,
        }

    def _answers(
        self, passage: tf.Tensor, question: tf.Tensor, count: int = 1
    ) -> tuple[dict[str, tf.Tensor], Tokens, tf.Tensor, tf.Tensor]:
        """Return the best answers, the passage's tokens, log-probabilities and what was cut.

        The answers are the outputs of ``predict`` and ``length``, each ``[batch, count]``.
        """
        limit, tokens, cut = self._settings.max_length, {}, 0
        passage, is_passage_cut = limit_characters(passage, limit)
        question, is_question_cut = limit_characters(question, limit)
        texts = {"passage": (passage, is_passage_cut), "question": (question, is_question_cut)}
        for name, (text, is_cut) in texts.items():
            whole = tokenize(self.tokenizers["passage"], text)
            lengths = tf.cast(whole.ids.row_lengths(), tf.int32)
            cut += tf.maximum(lengths - limit, is_cut)
            tokens[name] = Tokens(*(part[:, :limit] for part in whole))
        inputs = {name: to_dense(side.ids) for name, side in tokens.items()}
        log_probs = tf.nn.log_softmax(tf.cast(self._model(inputs)["logits"], tf.float32))
        first, last, scores = best_spans(
            log_probs[:, -2], log_probs[:, -1], self._settings.max_answer_tokens, count
        )
        is_missing = (is_blank(passage) | is_blank(question))[:, None]
        is_empty = is_missing | (scores < MASKED / 2)
        edges = zip(tokens["passage"][1:], (first, last), strict=True)
        begin, end = (
            tf.where(is_empty, 0, tf.gather(to_dense(part), at, batch_dims=1)) for part, at in edges
        )
        characters = to_characters(passage, tf.concat([begin, end], axis=1))
        outputs = {
            "answer": tf.strings.substr(passage[:, None], begin, end - begin),
            "begin": characters[:, :count],
            "end": characters[:, count:],
            "score": tf.where(is_missing, math.nan, scores),
            "length": tf.where(is_empty, 0, last - first + 1),
        }
        log_probs = tf.where((inputs["passage"] != PAD)[:, None], log_probs, MASKED)
        return outputs, tokens["passage"], log_probs, cut


def _best(spans: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Return the outputs of ``predict`` from the result of ``_answers``."""
    return {name: spans[name][:, 0] for name in ("answer", "begin", "end", "score")}
