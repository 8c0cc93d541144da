"""The exported graph of text-to-text models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from regard.models.search import Hypotheses, Search
from regard.models.seq2seq import Seq2Seq
from regard.models.settings.search import SearchLimits
from regard.models.tasks import attention_heads
from regard.models.tasks.search_outputs import (
    N_BEST,
    best,
    count_tokens,
    create_search,
    n_best,
    score_output_lengths,
    score_texts,
    token_ids,
)
from regard.models.tasks.served_model import (
    OutputLengths,
    ServedModel,
    ServedModule,
    with_signature,
)
from regard.models.vocabulary import PAD

_TEXTS = [tf.TensorSpec([None], tf.string, name="source")]
_PAIRS = [*_TEXTS, tf.TensorSpec([None], tf.string, name="target")]
# Outputs about the source, in addition to those about the target.
_SOURCE_OUTPUTS = ("source_pieces", "source_length", "source_cut", "alignment")
# The attention of the signature ``heads``, by the names of ``Seq2Seq.head_names``.
_HEADS = {
    "cross": {"rows": "target_pieces", "columns": "source_pieces", "weights": "cross_heads"},
    "source": {"rows": "source_pieces", "columns": "source_pieces", "weights": "source_heads"},
    "target": {
        "rows": "target_pieces",
        "columns": attention_heads.DECODER_INPUTS,
        "weights": "target_heads",
    },
}
_LENGTHS = {
    "source_pieces": "source_length",
    "target_pieces": "target_length",
    attention_heads.DECODER_INPUTS: "target_length",
}


class ServedText(ServedModule):
    """Tokenizers, model and search in one graph, as TensorFlow Serving runs it.

    Args:
        model: The trained model, in float32.
        source_tokenizer: The tokenizer of the sources (``tensorflow_text``).
        target_tokenizer: The tokenizer of the targets.
        search: The section ``search``.
        output: The name of the output with the texts.
    """

    _model: Seq2Seq

    def __init__(
        self,
        model: Seq2Seq,
        source_tokenizer: Any,
        target_tokenizer: Any,
        search: SearchLimits,
        output: str,
    ):
        super().__init__(model, name="served_text")
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self._limits = search
        self._search = create_search(search)
        self._max_target_length = search.max_length_offset + int(
            search.max_source_length * search.max_length_factor
        )
        self._output = output

    def served_model(self, task: str) -> ServedModel:
        """Return the signatures and the contract of the export.

        Args:
            task: The name of the task.
        """
        source = {"name": "source", "kind": "text"}
        target = {"name": "target", "kind": "text", "like": self._output}
        outputs: OutputLengths = {self._output: [], "score": []}
        detail: OutputLengths = {
            **outputs,
            "source_pieces": ["source_length"],
            "source_length": [],
            "source_cut": [],
            "target_pieces": ["target_length"],
            "target_length": [],
            "alignment": ["target_length", "source_length"],
        }
        scored = {
            **score_output_lengths("target_pieces"),
            **{name: detail[name] for name in _SOURCE_OUTPUTS},
        }
        described = {
            "serving_default": {"inputs": [source], "outputs": outputs},
            "align": {"inputs": [source], "outputs": detail},
            "score": {"inputs": [source, target], "outputs": scored},
            "nbest": {"inputs": [source], "outputs": dict(N_BEST)},
            "heads": {"inputs": [source, target], "outputs": self._head_lengths()},
        }
        signatures = self.signatures()
        contract = {
            "task": task,
            "inputs": [source],
            "answer": self._output,
            "answer_kind": "text",
            "score": "score",
            "detail": "align",
            "scored": "score",
            # EOS does not count.
            "size": {"output": "source_length", "minus": 1, "unit": "source tokens"},
            "looks": {"rows": "target_pieces", "columns": "source_pieces", "weights": "alignment"},
            "heads": attention_heads.contract_entry(self._head_attention()),
            "cut": "source_cut",
            "signatures": {name: described[name] for name in signatures},
        }
        return ServedModel(self, signatures, contract)

    def signatures(self) -> dict[str, Callable[..., Any]]:
        """Return the signatures; ``nbest`` for several hypotheses, ``heads`` for Transformers."""
        signatures: dict[str, Callable[..., Any]] = {
            "serving_default": self.predict,
            "align": self.align,
            "score": self.score,
        }
        # Decorated here: a decorated method would be exported with every module.
        if self._search.hypotheses > 1:
            signatures["nbest"] = with_signature(_TEXTS)(self.n_best)
        if self._model.head_names:
            signatures["heads"] = with_signature(_PAIRS)(self.heads)
        return signatures

    @with_signature(_TEXTS)
    def predict(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the best texts ``[batch]`` for texts ``[batch]``, and their ``score`` ``[batch]``.

        The score is the natural logarithm of the probability.
        """
        source_ids, _ = self._source_ids(source)
        hypotheses = self._run_search(source, source_ids, self._search.best())
        return best(self.target_tokenizer, hypotheses, self._output)

    @with_signature(_TEXTS)
    def align(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the outputs of ``predict``, the tokens of both sides, and the attention.

        ``alignment`` is ``[batch, target, source]``; row t of an example has its weights in the
        first ``source_length`` columns, and rows from ``target_length`` on are padding. Both
        lengths include EOS, which can be attended to. ``source_cut`` ``[batch]`` is the number of
        truncated tokens of a source.
        """
        source_ids, cut = self._source_ids(source)
        hypotheses = self._run_search(source, source_ids, self._search.best())
        target_ids = hypotheses.ids[:, 0]
        _, alignment = self._model.teacher_force(source_ids, target_ids)
        return {
            **best(self.target_tokenizer, hypotheses, self._output),
            **self._source_outputs(source_ids, cut),
            "target_pieces": self.target_tokenizer.id_to_string(target_ids),
            "target_length": count_tokens(target_ids),
            "alignment": tf.cast(alignment, tf.float32)
            * tf.cast(target_ids != PAD, tf.float32)[:, :, None],
        }

    @with_signature(_PAIRS)
    def score(self, source: tf.Tensor, target: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the probability of given targets ``[batch]`` for sources ``[batch]``.

        See ``score_texts``; ``alignment`` is as in ``align``. The ``score`` of a search's own
        output is the same as that of the search, unless the tokenizer splits the text in another
        way than it was generated.
        """
        source_ids, cut = self._source_ids(source)
        outputs, alignment = score_texts(
            self._model,
            self.target_tokenizer,
            source_ids,
            target,
            self._max_target_length,
            "target_pieces",
        )
        return {**outputs, **self._source_outputs(source_ids, cut), "alignment": alignment}

    def n_best(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return all hypotheses for texts ``[batch]``, see ``search_outputs.n_best``."""
        source_ids, _ = self._source_ids(source)
        return n_best(self.target_tokenizer, self._run_search(source, source_ids, self._search))

    def _source_outputs(self, source_ids: tf.Tensor, cut: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            "source_pieces": self.source_tokenizer.id_to_string(source_ids),
            "source_length": count_tokens(source_ids),
            "source_cut": cut,
        }

    def heads(self, source: tf.Tensor, target: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the attention of every head for given targets ``[batch]`` and sources ``[batch]``.

        ``source_heads`` ``[batch, layers, heads, source, source]`` is the encoder's self-attention,
        ``cross_heads`` ``[batch, layers, heads, target, source]`` the attention to the source, and
        ``target_heads`` ``[batch, layers, heads, target, target]`` the decoder's self-attention, to
        its inputs ``read_pieces`` ``[batch, target]``.
        """
        source_ids, _ = self._source_ids(source)
        target_ids, _ = token_ids(self.target_tokenizer, target, self._max_target_length)
        masks = {
            "source": source_ids != PAD,
            "cross": target_ids != PAD,
            "target": target_ids != PAD,
        }
        inputs = attention_heads.decoder_inputs(target_ids)
        outputs = {
            "source_pieces": self.source_tokenizer.id_to_string(source_ids),
            "source_length": count_tokens(source_ids),
            "target_pieces": self.target_tokenizer.id_to_string(target_ids),
            "target_length": count_tokens(target_ids),
            attention_heads.DECODER_INPUTS: self.target_tokenizer.id_to_string(inputs),
            **attention_heads.head_outputs(self._model, source_ids, target_ids, masks),
        }
        return {name: outputs[name] for name in self._head_lengths()}

    def _head_attention(self) -> list[dict[str, str]]:
        return [entry for name, entry in _HEADS.items() if name in self._model.head_names]

    def _head_lengths(self) -> OutputLengths:
        """Return the outputs of ``heads``: the weights, and the labels of their axes."""
        outputs: OutputLengths = {}
        for entry in self._head_attention():
            sides = [entry["rows"], entry["columns"]]
            lengths = [_LENGTHS[side] for side in sides]
            outputs |= {length: [] for length in lengths}
            outputs |= {side: [length] for side, length in zip(sides, lengths, strict=True)}
            outputs[entry["weights"]] = [None, None, *lengths]
        return outputs

    def _source_ids(self, source: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return ids ``[batch, source]`` with EOS, and the numbers of truncated tokens."""
        limit = self._limits.max_source_length
        error = None
        if self._limits.long_source == "refuse":
            error = f"a source has more than the {limit} tokens of max_source_length"
        return token_ids(self.source_tokenizer, source, limit, error)

    def _run_search(self, source: tf.Tensor, source_ids: tf.Tensor, search: Search) -> Hypotheses:
        tokens = tf.cast(count_tokens(source_ids) - 1, tf.float32)
        longest = tf.cast(tokens * self._limits.max_length_factor, tf.int32)
        limits = longest + self._limits.max_length_offset + 1
        minimums = None
        if self._limits.min_length_factor:
            shortest = tf.math.ceil(tokens * self._limits.min_length_factor)
            minimums = tf.cast(shortest, tf.int32) + 1
        # Sampling depends only on the text and the seed.
        keys = tf.cast(tf.strings.to_hash_bucket_fast(source, 2**31 - 1), tf.int32)
        return self._model.search(source_ids, search, limits, minimums=minimums, keys=keys)
