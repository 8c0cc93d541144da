"""The exported graph of models that output texts."""

import copy
import math
from typing import Any

import tensorflow as tf

from regard.models.search import BeamSearch, Hypotheses, Search
from regard.models.search.base import count_tokens
from regard.models.seq2seq import Seq2Seq
from regard.models.tasks import search_outputs
from regard.models.tasks.confidence import CONFIDENCE, Calibration, output_features
from regard.models.tasks.copy_tokenizer import detokenize, token_strings
from regard.models.tasks.served_model import (
    ExportedSignature,
    OutputLengths,
    Row,
    ServedModule,
    with_signature,
)
from regard.models.tasks.text_preprocessing import limit_characters
from regard.models.vocabulary import BOS, EOS, PAD, UNK

# The output with the tokens that the decoder's self-attention attends to: BOS, then all but the
# last token.
DECODER_INPUTS = "read_pieces"
# The inputs of the signature ``constrained`` after those of the model.
CONSTRAINTS = ("prefix", "phrases")
# The beam of a constrained search: it is divided by the number of tokens covered.
_MIN_CONSTRAINED_BEAM = 10
# The rows and columns of the attention of ``Seq2Seq.heads``, by its names.
_HEADS = {"cross": ("target", "source"), "source": ("source", "source"), "target": ("target", "")}


class ServedTextOutput(ServedModule):
    """Tokenizer, model and search in one graph, as TensorFlow Serving runs it.

    Attributes:
        prefix: Of the outputs about the tokens of an output, for example ``target_``.
        source_outputs: The outputs about the source, which ``_describe_source`` returns.
        source_labels: The input or output with the labels of the attended positions.
        source_lengths: The lengths of the dimensions of the attended positions.
        cut_outputs: The output with the number of truncated tokens, if a source can be truncated.
        calibration: What computes the output ``confidence``; None without it.
    """

    prefix: str
    source_outputs: OutputLengths
    source_labels: str
    source_lengths: list[str | None]
    cut_outputs: OutputLengths = {}
    calibration: Calibration | None = None
    _model: Seq2Seq

    @property
    def _tokenizer(self) -> Any:
        return self.tokenizers[self._description.reference.name]

    @property
    def _max_length(self) -> int:
        return self._search_settings.longest_output

    def signatures(self) -> dict[str, ExportedSignature]:
        """Return the signatures; ``nbest`` for several hypotheses, ``heads`` for Transformers."""
        output, length = self._description.output, f"{self.prefix}length"
        target = {"name": self._description.reference.name, "kind": "text", "like": output}
        pair = [*self._inputs, target]
        best: OutputLengths = {output: [], "score": [], **self.cut_outputs}
        rated: OutputLengths = {**best, CONFIDENCE: []} if self.calibration else best
        tokens: OutputLengths = {f"{self.prefix}pieces": [length], length: []}
        alignment: OutputLengths = {"alignment": [length, *self.source_lengths]}
        scores: OutputLengths = {f"{self.prefix}scores": [length], f"{self.prefix}cut": []}
        signatures = {
            "serving_default": ExportedSignature(self.predict, self._inputs, rated),
            "align": ExportedSignature(
                self.align, self._inputs, {**rated, **self.source_outputs, **tokens, **alignment}
            ),
            "score": ExportedSignature(
                self.score,
                pair,
                {"score": [], **tokens, **scores, **self.source_outputs, **alignment},
            ),
        }
        constraints = [{"name": name, "kind": "text", "default": ""} for name in CONSTRAINTS]
        signatures["constrained"] = ExportedSignature(
            self.predict_constrained, [*self._inputs, *constraints], best
        )
        if self._search.hypotheses > 1:
            outputs = {**search_outputs.N_BEST, **self.cut_outputs}
            signatures["nbest"] = ExportedSignature(self.n_best, self._inputs, outputs)
        if self._model.head_names:
            signatures["heads"] = ExportedSignature(self.heads, pair, self._head_lengths())
        return signatures

    def contract(self) -> dict[str, Any]:
        rows = f"{self.prefix}pieces"
        heads = [
            {"rows": labels[0], "columns": labels[1], "weights": f"{name}_heads"}
            for name, labels in self._head_labels().items()
        ]
        return {
            "looks": {"rows": rows, "columns": self.source_labels, "weights": "alignment"},
            "heads": {"signature": "heads", "looks": heads} if heads else None,
            "confidence": self.calibration.entry() if self.calibration else None,
        }

    def raw_reference(self, row: Row) -> str:
        """Return the reference of a training row, as the tokenizer has normalized it."""
        ids = tf.constant(row[f"{self._description.reference.name}_ids"], tf.int32)[None]
        text = detokenize(self._tokenizer, tf.RaggedTensor.from_tensor(ids))[0]
        return str(text.numpy().decode(errors="replace"))

    def _is_blank(self, source: tf.Tensor) -> tf.Tensor:
        """Return which inputs have no content, ``[batch]``; their output is empty."""
        return tf.zeros_like(source, tf.bool)

    def _is_empty(self, source: tf.Tensor, encoded: tf.Tensor) -> tf.Tensor:
        """Return which inputs the model has nothing to read of, ``[batch]``."""
        return self._is_blank(source)

    def _encode(self, source: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """Return the inputs of the model, the numbers of truncated tokens, and the tokenizer.

        The tokenizer is that of the outputs of these sources.
        """
        raise NotImplementedError

    def _limits_of(self, encoded: tf.Tensor) -> tf.Tensor:
        """Return the maximum lengths of the outputs, EOS included, int32 ``[batch]``."""
        raise NotImplementedError

    def _row_options(self, source: tf.Tensor, encoded: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the ``keys`` and perhaps ``minimums`` of ``Search.__call__``."""
        raise NotImplementedError

    def predict(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the best text of each source ``[batch]``, and its ``score`` ``[batch]``.

        The score is the natural logarithm of the probability. Of a blank source, the text is empty
        and the score NaN, as the ``confidence`` ``[batch]``, if there is a calibration.
        """
        encoded, cut, tokenizer = self._encode(source)
        hypotheses = self._hypotheses(source, encoded, tokenizer, self._search.best())
        outputs = self._best(tokenizer, cut, hypotheses)
        if self.calibration is None:
            return outputs
        alignment = self._attention(encoded, hypotheses)
        return {**outputs, **self._confidence(encoded, hypotheses, alignment)}

    def features_function(self) -> Any:
        """Return ``predict_features`` as a graph with the weights that are exported."""
        function = self._with_float_weights(self.predict_features)
        return with_signature([tf.TensorSpec([None], tf.string)])(function)

    def predict_features(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the ``text`` of each source, and its ``features`` for a calibration."""
        encoded, cut, tokenizer = self._encode(source)
        hypotheses = self._hypotheses(source, encoded, tokenizer, self._search.best())
        alignment = self._attention(encoded, hypotheses)
        text = self._best(tokenizer, cut, hypotheses)[self._description.output]
        return {"text": text, "features": self._features(encoded, hypotheses, alignment)}

    def predict_constrained(
        self, source: tf.Tensor, prefix: tf.Tensor, phrases: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Return the outputs of ``predict`` with constraints on the texts.

        Args:
            source: ``[batch]``.
            prefix: ``[batch]``, the beginning of each text; empty for any.
            phrases: ``[batch]``, what each text must contain, one phrase on a line.

        Raises:
            InvalidArgumentError: the constraints of a row are longer than a text can be, or have
                characters without a token.
        """
        encoded, cut, tokenizer = self._encode(source)
        limit = self._max_length
        prefix, is_cut = limit_characters(prefix, limit + 1)
        phrases, are_cut = limit_characters(phrases, limit + 1)
        prefix_ids = self._constraint_ids(tokenizer, prefix)
        lines = tf.ragged.map_flat_values(tf.strings.strip, tf.strings.split(phrases, "\n"))
        phrase_ids = self._constraint_ids(tokenizer, lines)
        lengths = prefix_ids.row_lengths() + tf.reduce_sum(phrase_ids.row_lengths(axis=2), axis=1)
        lengths += tf.cast((limit + 1) * (is_cut + are_cut), lengths.dtype)
        ends = phrase_ids[:, :, :1] * 0 + EOS  # none after an empty one
        slots = tf.concat([phrase_ids, ends], axis=2).merge_dims(1, 2)
        has_unknown = tf.reduce_any(tf.concat([prefix_ids.values, slots.values], 0) == UNK)
        message = (
            f"a prefix has more than {limit} tokens with its phrases, set by max_length_factor"
        )
        check = tf.debugging.Assert(tf.reduce_all(lengths <= limit), [message, lengths])
        unknown = tf.debugging.Assert(~has_unknown, ["a constraint has unknown characters"])
        with tf.control_dependencies([check, unknown]):
            minimums = tf.cast(lengths, tf.int32) + 1
        hypotheses = self._hypotheses(
            source,
            encoded,
            tokenizer,
            _beam_search(self._search),
            minimums,
            prefix=tf.cast(prefix_ids.to_tensor(PAD), tf.int32),
            phrases=tf.cast(slots.to_tensor(PAD), tf.int32),
        )
        return self._best(tokenizer, cut, hypotheses)

    def align(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the outputs of ``predict``, the tokens of both sides, and the attention.

        Row t of ``alignment`` ``[batch, target, source]`` (``[batch, target, rows, columns]`` of
        the grid of an image) has the weights of step t; rows from the length of the output on are
        padding. The lengths of texts include EOS, which can be attended to. ``source_cut``
        ``[batch]`` is the number of truncated tokens of a source, see ``search_outputs.token_ids``.
        """
        encoded, cut, tokenizer = self._encode(source)
        hypotheses = self._hypotheses(source, encoded, tokenizer, self._search.best())
        ids = hypotheses.ids[:, 0]
        alignment = self._attention(encoded, hypotheses)
        return {
            **self._best(tokenizer, cut, hypotheses),
            **self._confidence(encoded, hypotheses, alignment),
            **self._describe_source(source, encoded, cut, tokenizer),
            **self._describe_target(tokenizer, ids),
            "alignment": self._shape_weights(alignment),
        }

    def score(self, source: tf.Tensor, target: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the probability of given texts ``[batch]`` for sources ``[batch]``.

        ``score`` ``[batch]`` is the natural logarithm of the probability, including the end;
        ``scores`` ``[batch, tokens]`` are those of single tokens; ``cut`` ``[batch]`` is the number
        of truncated tokens of the text; ``alignment`` is as in ``align``. The ``score`` of a
        search's own output is the same as that of the search, unless the tokenizer splits the text
        in another way than it was generated. There is no score (NaN) for a blank source.
        """
        encoded, source_cut, tokenizer = self._encode(source)
        ids, cut = search_outputs.token_ids(tokenizer, target, self._max_length)
        scores, alignment = self._model.score_with_alignment(encoded, ids)
        scores = tf.cast(scores, tf.float32)
        return {
            "score": tf.where(self._is_blank(source), math.nan, tf.reduce_sum(scores, axis=1)),
            **self._describe_target(tokenizer, ids, target),
            f"{self.prefix}scores": scores,
            f"{self.prefix}cut": cut,
            **self._describe_source(source, encoded, source_cut, tokenizer),
            "alignment": self._shape_weights(tf.cast(alignment, tf.float32)),
        }

    def n_best(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return all hypotheses for sources ``[batch]``, see ``search_outputs.n_best``."""
        encoded, cut, tokenizer = self._encode(source)
        hypotheses = self._hypotheses(source, encoded, tokenizer, self._search)
        outputs = search_outputs.n_best(tokenizer, hypotheses)
        return {**outputs, **dict.fromkeys(self.cut_outputs, cut)}

    def heads(self, source: tf.Tensor, target: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the attention of every head for given texts ``[batch]`` and sources ``[batch]``.

        ``source_heads`` ``[batch, layers, heads, source, source]`` is the encoder's self-attention,
        ``cross_heads`` ``[batch, layers, heads, target, source]`` the attention to the source, with
        ``source`` as in ``align``, and ``target_heads`` ``[batch, layers, heads, target, target]``
        the decoder's self-attention, to its inputs ``read_pieces`` ``[batch, target]``.
        """
        encoded, cut, tokenizer = self._encode(source)
        ids, _ = search_outputs.token_ids(tokenizer, target, self._max_length)
        mask = ids != PAD
        masks = {"source": encoded != PAD, "cross": mask, "target": mask}
        weights = search_outputs.head_outputs(self._model, encoded, ids, masks)
        if "cross_heads" in weights:
            weights["cross_heads"] = self._shape_weights(weights["cross_heads"])
        outputs = {
            **self._describe_source(source, encoded, cut, tokenizer),
            **self._describe_target(tokenizer, ids, target),
            **weights,
        }
        begins = tokenizer.id_to_string(tf.fill([tf.shape(ids)[0], 1], BOS))
        outputs[DECODER_INPUTS] = tf.concat([begins, outputs[f"{self.prefix}pieces"][:, :-1]], 1)
        return {name: outputs[name] for name in self._head_lengths()}

    def _head_labels(self) -> dict[str, tuple[str, str]]:
        """Return the inputs or outputs with the labels of the rows and columns of all heads."""
        labels = {
            "source": self.source_labels,
            "target": f"{self.prefix}pieces",
            "": DECODER_INPUTS,
        }
        names = {name: sides for name, sides in _HEADS.items() if name in self._model.head_names}
        return {name: (labels[rows], labels[columns]) for name, (rows, columns) in names.items()}

    def _head_lengths(self) -> OutputLengths:
        """Return the outputs of ``heads``: the weights, and the labels of their axes."""
        lengths: OutputLengths = {
            self.source_labels: self.source_lengths,
            f"{self.prefix}pieces": [f"{self.prefix}length"],
            DECODER_INPUTS: [f"{self.prefix}length"],
        }
        outputs: OutputLengths = {}
        for name, sides in self._head_labels().items():
            for side in sides:
                if None not in lengths[side]:  # an image is not an output
                    outputs |= {str(lengths[side][0]): [], side: lengths[side]}
            outputs[f"{name}_heads"] = [None, None, *lengths[sides[0]], *lengths[sides[1]]]
        return outputs

    def _hypotheses(
        self,
        source: tf.Tensor,
        encoded: tf.Tensor,
        tokenizer: Any,
        search: Search,
        min_limits: tf.Tensor = 0,
        **constraints: tf.Tensor,
    ) -> Hypotheses:
        """Search with the limits of the sources, raised to ``min_limits`` ``[batch]``.

        The hypotheses of a blank source are empty and have no log-probability.
        """
        limits = tf.maximum(self._limits_of(encoded), min_limits)
        options = self._row_options(source, encoded)
        ids, lengths, log_probs, scores = self._run_search(
            encoded, tokenizer, search, limits, **options, **constraints
        )
        is_blank = self._is_empty(source, encoded)[:, None]
        end = tf.where(tf.range(tf.shape(ids)[2]) == 0, EOS, PAD)
        return Hypotheses(
            tf.where(is_blank[:, :, None], end, ids),
            tf.where(is_blank, tf.minimum(lengths, 1), lengths),
            tf.where(is_blank, math.nan, log_probs),
            scores,
        )

    def _run_search(
        self, encoded: tf.Tensor, tokenizer: Any, search: Search, limits: tf.Tensor, **options: Any
    ) -> Hypotheses:
        """Search with the options of ``Search.__call__``."""
        return self._model.search(encoded, search, limits, **options)

    def _constraint_ids(self, tokenizer: Any, texts: Any) -> tf.RaggedTensor:
        """Return the ids of constraints, one text or several for each row."""
        return tokenizer.tokenize(texts)

    def _best(self, tokenizer: Any, cut: tf.Tensor, hypotheses: Hypotheses) -> dict[str, tf.Tensor]:
        texts = search_outputs.to_texts(tokenizer, hypotheses.ids[:, 0], hypotheses.lengths[:, 0])
        scores = hypotheses.log_probabilities[:, 0]
        outputs = {self._description.output: texts, "score": scores}
        return {**outputs, **dict.fromkeys(self.cut_outputs, cut)}

    def _attention(self, encoded: tf.Tensor, hypotheses: Hypotheses) -> tf.Tensor:
        """Return the attention of the best hypotheses, ``[batch, target, source]``, float32."""
        ids = hypotheses.ids[:, 0]
        _, alignment = self._model.teacher_force(encoded, ids)
        return tf.cast(alignment, tf.float32) * tf.cast(ids != PAD, tf.float32)[:, :, None]

    def _features(
        self, encoded: tf.Tensor, hypotheses: Hypotheses, alignment: tf.Tensor
    ) -> tf.Tensor:
        scores, lengths = hypotheses.log_probabilities[:, 0], hypotheses.lengths[:, 0]
        return output_features(scores, lengths, alignment, self._source_sizes(encoded, alignment))

    def _confidence(
        self, encoded: tf.Tensor, hypotheses: Hypotheses, alignment: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Return the output ``confidence``; nothing without a calibration."""
        if self.calibration is None:
            return {}
        features = self._features(encoded, hypotheses, alignment)
        return {CONFIDENCE: self.calibration.confidence(features)}

    def _source_sizes(self, encoded: tf.Tensor, alignment: tf.Tensor) -> tf.Tensor:
        """Return the numbers of positions that can be attended to, ``[batch]``."""
        return tf.fill([tf.shape(alignment)[0]], tf.shape(alignment)[2])

    def _describe_target(
        self, tokenizer: Any, ids: tf.Tensor, target: tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        if target is not None:
            target, _ = limit_characters(target, self._max_length)
        return {
            f"{self.prefix}pieces": token_strings(tokenizer, ids, target),
            f"{self.prefix}length": count_tokens(ids),
        }

    def _describe_source(
        self, source: tf.Tensor, encoded: tf.Tensor, cut: tf.Tensor, tokenizer: Any
    ) -> dict[str, tf.Tensor]:
        """Return the outputs about the source."""
        return {}

    def _shape_weights(self, weights: tf.Tensor) -> tf.Tensor:
        """Reshape weights ``[..., positions]`` to the dimensions of the source."""
        return weights


def _beam_search(search: Search) -> BeamSearch:
    """Return the best hypothesis of a beam that is wide enough for constraints."""
    beam = copy.copy(search) if isinstance(search, BeamSearch) else BeamSearch()
    beam.hypotheses = 1
    beam.beam_size = beam.beam_width = max(beam.beam_size, _MIN_CONSTRAINED_BEAM)
    return beam
