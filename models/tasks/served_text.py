"""A model of text to text as it is exported: raw text in, raw text out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from models.search import Hypotheses
from models.seq2seq import Seq2Seq
from models.tasks.found import N_BEST, best, n_best, scored, scored_as, search_of
from models.tasks.pieces import counts, read_pieces
from models.tasks.served import Served
from models.vocabulary import PAD

_TEXTS = [tf.TensorSpec([None], tf.string, name="source")]
_PAIRS = [*_TEXTS, tf.TensorSpec([None], tf.string, name="target")]


class ServedText(tf.Module):
    """Tokenizers, model and search in one graph: what TensorFlow Serving runs.

    Args:
        model: the trained model, in float32.
        source_tokenizer: the tokenizer of the source side (``tensorflow_text``).
        target_tokenizer: that of the target side.
        search: the YAML's section ``search`` (see ``search_of``).
        answer: what the output with the answer is called.

    Raises:
        ValueError: there is no such search, or no such way to treat long sources.
    """

    def __init__(
        self,
        model: Seq2Seq,
        source_tokenizer: Any,
        target_tokenizer: Any,
        search: Mapping[str, Any],
        answer: str,
    ):
        super().__init__(name="served_text")
        self._model = model
        # The SavedModel keeps what hangs on the module: the variables and the tokenizers.
        self.weights = [weight.value for weight in model.weights]
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self._search, self._limits = search_of(search)
        self._answer = answer

    def served(self, task: str) -> Served:
        """The whole export; ``task`` is the name of the task that it is for."""
        source = {"name": "source", "kind": "text"}
        given = {"name": "target", "kind": "text", "like": self._answer}
        told: dict[str, list[str | None]] = {self._answer: [], "score": []}
        detail: dict[str, list[str | None]] = {
            **told,
            "source_pieces": ["source_length"],
            "source_length": [],
            "source_cut": [],
            "target_pieces": ["target_length"],
            "target_length": [],
            "alignment": ["target_length", "source_length"],
        }
        meaning = {
            "serving_default": {"inputs": [source], "outputs": told},
            "align": {"inputs": [source], "outputs": detail},
            "score": {"inputs": [source, given], "outputs": scored_as("target_pieces")},
            "nbest": {"inputs": [source], "outputs": dict(N_BEST)},
        }
        signatures = self.signatures()
        contract = {
            "task": task,
            "inputs": [source],
            "answer": self._answer,
            "answer_kind": "text",
            "score": "score",
            "detail": "align",
            "scored": "score",
            # The end of sentence is no part of a text's length.
            "size": {"output": "source_length", "minus": 1, "unit": "source pieces"},
            "looks": {"rows": "target_pieces", "columns": "source_pieces", "weights": "alignment"},
            "cut": "source_cut",
            "signatures": {name: meaning[name] for name in signatures},
        }
        return Served(self, signatures, contract)

    def signatures(self) -> dict[str, Callable[..., Any]]:
        """What the exported model can be asked; ``nbest`` only where there is more than one."""
        found = {"serving_default": self.answer, "align": self.align, "score": self.score}
        if self._search.hypotheses > 1:
            # Made here: a method with a signature would be exported wherever the module is.
            found["nbest"] = tf.function(self.n_best, input_signature=_TEXTS)
        return found

    @tf.function(input_signature=_TEXTS)
    def answer(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """Texts ``[batch]`` → the answers ``[batch]`` and ``score`` ``[batch]``.

        The score is the natural logarithm of the probability of the answer.
        """
        source_ids, _ = self._source_ids(source)
        return best(self.target_tokenizer, self._find(source, source_ids), self._answer)

    @tf.function(input_signature=_TEXTS)
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
            "source_length": counts(source_ids),
            "source_cut": cut,
            "target_pieces": self.target_tokenizer.id_to_string(target_ids),
            "target_length": counts(target_ids),
            "alignment": tf.cast(alignment, tf.float32)
            * tf.cast(target_ids != PAD, tf.float32)[:, :, None],
        }

    @tf.function(input_signature=_PAIRS)
    def score(self, source: tf.Tensor, target: tf.Tensor) -> dict[str, tf.Tensor]:
        """Texts and answers to them, ``[batch]`` each → how probable the model finds the answers.

        See ``scored``. Of what the search found it gives the same ``score`` as the search, unless
        the tokenizer cuts the answer into other pieces than those it was written in.
        """
        source_ids, _ = self._source_ids(source)
        longest = self._limits["max_source_length"] * self._limits["max_length_factor"]
        longest = int(longest) + self._limits["max_length_offset"]
        return scored(
            self._model, self.target_tokenizer, source_ids, target, longest, "target_pieces"
        )

    def n_best(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """Texts ``[batch]`` → all that the search found, each ``[batch, n]`` (see ``n_best``)."""
        source_ids, _ = self._source_ids(source)
        return n_best(self.target_tokenizer, self._find(source, source_ids))

    def _source_ids(self, source: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The pieces ``[batch, source]``, EOS behind, and how many were cut off, ``[batch]``."""
        limit = self._limits["max_source_length"]
        complaint = None
        if self._limits["long_source"] == "refuse":
            complaint = f"a source has more than the {limit} pieces of max_source_length"
        return read_pieces(self.source_tokenizer, source, limit, complaint)

    def _find(self, source: tf.Tensor, source_ids: tf.Tensor) -> Hypotheses:
        pieces = tf.cast(counts(source_ids) - 1, tf.float32)
        longest = tf.cast(pieces * self._limits["max_length_factor"], tf.int32)
        limits = longest + self._limits["max_length_offset"] + 1
        minimums = None
        if self._limits["min_length_factor"]:
            shortest = tf.math.ceil(pieces * self._limits["min_length_factor"])
            minimums = tf.cast(shortest, tf.int32) + 1
        # What is drawn for a text depends on nothing but the text and the seed.
        keys = tf.cast(tf.strings.to_hash_bucket_fast(source, 2**31 - 1), tf.int32)
        return self._model.search(source_ids, self._search, limits, minimums=minimums, keys=keys)
