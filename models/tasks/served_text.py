"""A model of text to text as it is exported: raw text in, raw text out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from models.search import Hypotheses
from models.seq2seq import Seq2Seq
from models.tasks.found import best, n_best, search_of
from models.tasks.served import Served
from models.vocabulary import EOS, PAD


class ServedText(tf.Module):
    """Tokenizers, model and search in one graph: what TensorFlow Serving runs.

    Args:
        model: the trained model, in float32.
        source_tokenizer: the tokenizer of the source side (``tensorflow_text``).
        target_tokenizer: that of the target side.
        search: the YAML's section ``search`` (see ``search_of``).
        answer: what the output with the answer is called, one and several.

    Raises:
        ValueError: there is no such search, or no such way to treat long sources.
    """

    def __init__(
        self,
        model: Seq2Seq,
        source_tokenizer: Any,
        target_tokenizer: Any,
        search: Mapping[str, Any],
        answer: tuple[str, str],
    ):
        super().__init__(name="served_text")
        self._model = model
        # The SavedModel keeps what hangs on the module: the variables and the tokenizers.
        self.weights = [weight.value for weight in model.weights]
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self._search, self._limits = search_of(search)
        self._answer, self._answers = answer

    def served(self, task: str) -> Served:
        """The whole export; ``task`` is the name of the task that it is for."""
        told: dict[str, list[str | None]] = {self._answer: [], "score": []}
        outputs = {
            "serving_default": told,
            "align": {
                **told,
                "source_pieces": ["source_length"],
                "source_length": [],
                "source_cut": [],
                "target_pieces": ["target_length"],
                "target_length": [],
                "alignment": ["target_length", "source_length"],
            },
            "n_best": {self._answers: [None], "log_probabilities": [None], "scores": [None]},
        }
        signatures = self.signatures()
        contract = {
            "task": task,
            "inputs": [{"name": "source", "kind": "text"}],
            "answer": self._answer,
            "answer_kind": "text",
            "score": "score",
            "detail": "align",
            # The end of sentence is no part of a text's length.
            "size": {"output": "source_length", "minus": 1, "unit": "source pieces"},
            "looks": {"rows": "target_pieces", "columns": "source_pieces", "weights": "alignment"},
            "cut": "source_cut",
            "signatures": {name: outputs[name] for name in signatures},
        }
        return Served(self, signatures, contract)

    def signatures(self) -> dict[str, Callable[..., Any]]:
        """What the exported model can be asked; ``n_best`` only where there is more than one."""
        found = {"serving_default": self.answer, "align": self.align}
        if self._search.hypotheses > 1:
            # Made here: a method with a signature would be exported wherever the module is.
            specs = [tf.TensorSpec([None], tf.string, name="source")]
            found["n_best"] = tf.function(self.n_best, input_signature=specs)
        return found

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="source")])
    def answer(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """Texts ``[batch]`` → the answers ``[batch]`` and ``score`` ``[batch]``.

        The score is the natural logarithm of the probability of the answer.
        """
        source_ids, _ = self._source_ids(source)
        return best(self.target_tokenizer, self._find(source, source_ids), self._answer)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="source")])
    def align(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """As ``answer``, with the pieces of both sides and where the model looked.

        ``alignment`` is ``[batch, target, source]``; row t of an example has its weight on the
        first ``source_length`` columns, and rows from ``target_length`` on are padding. Both
        lengths count the end of sentence, which is a piece that can be looked at too.
        ``source_cut`` ``[batch]`` is how many pieces of a source were not read.
        """
        source_ids, cut = self._source_ids(source)
        found = self._find(source, source_ids)
        target_ids = found.ids[:, 0]
        _, alignment = self._model.teacher_force(source_ids, target_ids)
        return {
            **best(self.target_tokenizer, found, self._answer),
            "source_pieces": self.source_tokenizer.id_to_string(source_ids),
            "source_length": _lengths(source_ids),
            "source_cut": cut,
            "target_pieces": self.target_tokenizer.id_to_string(target_ids),
            "target_length": _lengths(target_ids),
            "alignment": tf.cast(alignment, tf.float32)
            * tf.cast(target_ids != PAD, tf.float32)[:, :, None],
        }

    def n_best(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """Texts ``[batch]`` → what the search found, each ``[batch, n]``, the best first.

        The answers, their ``log_probabilities``, and the ``scores`` by which they are
        ordered. Where there are fewer than n the rest is empty, with impossible scores.
        """
        source_ids, _ = self._source_ids(source)
        found = self._find(source, source_ids)
        return n_best(self.target_tokenizer, found, self._answers)

    def _source_ids(self, source: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The pieces ``[batch, source]``, EOS behind, and how many were cut off, ``[batch]``."""
        ids = tf.cast(self.source_tokenizer.tokenize(source), tf.int32)
        limit = self._limits["max_source_length"]
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        cut = tf.maximum(lengths - limit, 0)
        if self._limits["long_source"] == "refuse":
            message = (
                f"a source has more than the {limit} pieces of max_source_length; the lengths of "
                "all that were sent:"
            )
            check = tf.debugging.Assert(tf.reduce_all(cut == 0), [message, lengths], summarize=20)
            with tf.control_dependencies([check]):
                cut = tf.identity(cut)
                ids = ids.with_values(tf.identity(ids.values))
        else:
            ids = ids[:, :limit]
        ends = tf.fill([tf.shape(source)[0], 1], EOS)
        padded = tf.concat([ids, ends], axis=1).to_tensor(PAD)
        # An empty request gets a column too: a loop over no steps gives nothing to stack.
        none = tf.cast(tf.shape(padded)[1] == 0, tf.int32)
        return tf.pad(padded, [[0, 0], [0, none]], constant_values=PAD), cut

    def _find(self, source: tf.Tensor, source_ids: tf.Tensor) -> Hypotheses:
        pieces = tf.cast(_lengths(source_ids) - 1, tf.float32)
        longest = tf.cast(pieces * self._limits["max_length_factor"], tf.int32)
        limits = longest + self._limits["max_length_offset"] + 1
        minimums = None
        if self._limits["min_length_factor"]:
            shortest = tf.math.ceil(pieces * self._limits["min_length_factor"])
            minimums = tf.cast(shortest, tf.int32) + 1
        # What is drawn for a text depends on nothing but the text and the seed.
        keys = tf.cast(tf.strings.to_hash_bucket_fast(source, 2**31 - 1), tf.int32)
        return self._model.search(source_ids, self._search, limits, minimums=minimums, keys=keys)


def _lengths(ids: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.cast(ids != PAD, tf.int32), axis=1)
