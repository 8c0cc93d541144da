"""A model of text to text as it is exported: raw text in, raw text out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from models.search import Hypotheses, Search
from models.seq2seq import Seq2Seq
from models.tasks import heads
from models.tasks.found import N_BEST, best, n_best, scored, scored_as, search_of
from models.tasks.pieces import counts, read_pieces
from models.tasks.served import Served, ServedModule, with_signature
from models.vocabulary import PAD

_TEXTS = [tf.TensorSpec([None], tf.string, name="source")]
_PAIRS = [*_TEXTS, tf.TensorSpec([None], tf.string, name="target")]
# What is told of a source beside the pieces of an answer.
_SEEN = ("source_pieces", "source_length", "source_cut", "alignment")
# What the heads look at: see ``ServedText.heads``.
_LOOKS = {
    "cross": {"rows": "target_pieces", "columns": "source_pieces", "weights": "cross_heads"},
    "source": {"rows": "source_pieces", "columns": "source_pieces", "weights": "source_heads"},
    "target": {"rows": "target_pieces", "columns": heads.READ, "weights": "target_heads"},
}
_LENGTHS = {
    "source_pieces": "source_length",
    "target_pieces": "target_length",
    heads.READ: "target_length",
}


class ServedText(ServedModule):
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

    _model: Seq2Seq

    def __init__(
        self,
        model: Seq2Seq,
        source_tokenizer: Any,
        target_tokenizer: Any,
        search: Mapping[str, Any],
        answer: str,
    ):
        super().__init__(model, name="served_text")
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self._search, self._limits = search_of(search)
        # The most pieces of an answer.
        self._longest = self._limits["max_length_offset"] + int(
            self._limits["max_source_length"] * self._limits["max_length_factor"]
        )
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
            "score": {
                "inputs": [source, given],
                "outputs": {**scored_as("target_pieces"), **{name: detail[name] for name in _SEEN}},
            },
            "nbest": {"inputs": [source], "outputs": dict(N_BEST)},
            "heads": {"inputs": [source, given], "outputs": self._heads_as()},
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
            "heads": heads.told(self._looks()),
            "cut": "source_cut",
            "signatures": {name: meaning[name] for name in signatures},
        }
        return Served(self, signatures, contract)

    def signatures(self) -> dict[str, Callable[..., Any]]:
        """What the exported model can be asked.

        ``nbest`` only where there is more than one, ``heads`` only of a Transformer.
        """
        found: dict[str, Callable[..., Any]] = {
            "serving_default": self.answer,
            "align": self.align,
            "score": self.score,
        }
        # Made here: a method with a signature would be exported wherever the module is.
        if self._search.hypotheses > 1:
            found["nbest"] = with_signature(_TEXTS)(self.n_best)
        if self._model.with_heads:
            found["heads"] = with_signature(_PAIRS)(self.heads)
        return found

    @with_signature(_TEXTS)
    def answer(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """Texts ``[batch]`` → the answers ``[batch]`` and ``score`` ``[batch]``.

        The score is the natural logarithm of the probability of the answer.
        """
        source_ids, _ = self._source_ids(source)
        found = self._find(source, source_ids, self._search.best())
        return best(self.target_tokenizer, found, self._answer)

    @with_signature(_TEXTS)
    def align(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """As ``answer``, with the pieces of both sides and where the model looked.

        ``alignment`` is ``[batch, target, source]``; row t of an example has its weight on the
        first ``source_length`` columns, and rows from ``target_length`` on are padding. Both
        lengths count the end of sentence, which is a piece that can be looked at too.
        ``source_cut`` ``[batch]`` is how many pieces of a source were not read.
        """
        source_ids, cut = self._source_ids(source)
        found = self._find(source, source_ids, self._search.best())
        target_ids = found.ids[:, 0]
        _, alignment = self._model.teacher_force(source_ids, target_ids)
        return {
            **best(self.target_tokenizer, found, self._answer),
            **self._source(source_ids, cut),
            "target_pieces": self.target_tokenizer.id_to_string(target_ids),
            "target_length": counts(target_ids),
            "alignment": tf.cast(alignment, tf.float32)
            * tf.cast(target_ids != PAD, tf.float32)[:, :, None],
        }

    @with_signature(_PAIRS)
    def score(self, source: tf.Tensor, target: tf.Tensor) -> dict[str, tf.Tensor]:
        """Texts and answers to them, ``[batch]`` each → how probable the model finds the answers.

        See ``scored``; ``alignment`` is where it looks for each piece, as in ``align``. Of what the
        search found it gives the same ``score`` as the search, unless the tokenizer cuts the answer
        into other pieces than those it was written in.
        """
        source_ids, cut = self._source_ids(source)
        told, looks = scored(
            self._model, self.target_tokenizer, source_ids, target, self._longest, "target_pieces"
        )
        return {**told, **self._source(source_ids, cut), "alignment": looks}

    def n_best(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """Texts ``[batch]`` → all that the search found, each ``[batch, n]`` (see ``n_best``)."""
        source_ids, _ = self._source_ids(source)
        found = self._find(source, source_ids, self._search)
        return n_best(self.target_tokenizer, found)

    def _source(self, source_ids: tf.Tensor, cut: tf.Tensor) -> dict[str, tf.Tensor]:
        """What was read of the sources, and how much was not."""
        return {
            "source_pieces": self.source_tokenizer.id_to_string(source_ids),
            "source_length": counts(source_ids),
            "source_cut": cut,
        }

    def heads(self, source: tf.Tensor, target: tf.Tensor) -> dict[str, tf.Tensor]:
        """Texts and answers to them, ``[batch]`` each → where every head of every layer looks.

        ``source_heads`` ``[batch, layers, heads, source, source]`` is where the encoder looks,
        ``cross_heads`` ``[batch, layers, heads, target, source]`` where the decoder looks at the
        source, and ``target_heads`` ``[batch, layers, heads, target, target]`` where it looks at
        what it has read, ``read_pieces`` ``[batch, target]``. The rows look, at the columns.
        """
        source_ids, _ = self._source_ids(source)
        target_ids, _ = read_pieces(self.target_tokenizer, target, self._longest)
        real = {
            "source": source_ids != PAD,
            "cross": target_ids != PAD,
            "target": target_ids != PAD,
        }
        outputs = {
            "source_pieces": self.source_tokenizer.id_to_string(source_ids),
            "source_length": counts(source_ids),
            "target_pieces": self.target_tokenizer.id_to_string(target_ids),
            "target_length": counts(target_ids),
            heads.READ: self.target_tokenizer.id_to_string(heads.read_ids(target_ids)),
            **heads.weights(self._model, source_ids, target_ids, real),
        }
        return {name: outputs[name] for name in self._heads_as()}

    def _looks(self) -> list[dict[str, str]]:
        """Those that this model has heads for."""
        return [look for name, look in _LOOKS.items() if name in self._model.with_heads]

    def _heads_as(self) -> dict[str, list[str | None]]:
        """The outputs of ``heads``: those that some weights have for rows or columns, and these."""
        found: dict[str, list[str | None]] = {}
        for look in self._looks():
            sides = [look["rows"], look["columns"]]
            lengths = [_LENGTHS[side] for side in sides]
            found |= {length: [] for length in lengths}
            found |= {side: [length] for side, length in zip(sides, lengths, strict=True)}
            found[look["weights"]] = [None, None, *lengths]
        return found

    def _source_ids(self, source: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The pieces ``[batch, source]``, EOS behind, and how many were cut off, ``[batch]``."""
        limit = self._limits["max_source_length"]
        complaint = None
        if self._limits["long_source"] == "refuse":
            complaint = f"a source has more than the {limit} pieces of max_source_length"
        return read_pieces(self.source_tokenizer, source, limit, complaint)

    def _find(self, source: tf.Tensor, source_ids: tf.Tensor, search: Search) -> Hypotheses:
        pieces = tf.cast(counts(source_ids) - 1, tf.float32)
        longest = tf.cast(pieces * self._limits["max_length_factor"], tf.int32)
        limits = longest + self._limits["max_length_offset"] + 1
        minimums = None
        if self._limits["min_length_factor"]:
            shortest = tf.math.ceil(pieces * self._limits["min_length_factor"])
            minimums = tf.cast(shortest, tf.int32) + 1
        # What is drawn for a text depends on nothing but the text and the seed.
        keys = tf.cast(tf.strings.to_hash_bucket_fast(source, 2**31 - 1), tf.int32)
        return self._model.search(source_ids, search, limits, minimums=minimums, keys=keys)
