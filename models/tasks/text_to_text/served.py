"""The exported graph of text-to-text models."""

import re
from dataclasses import replace
from typing import Any

import tensorflow as tf

from regard.models.protected_spans import SLOTS, symbol
from regard.models.search import Hypotheses, Search
from regard.models.search.base import count_tokens
from regard.models.tasks.copy_tokenizer import CopyTokenizer, detokenize, token_strings
from regard.models.tasks.greedy_decoding import limits_of_texts
from regard.models.tasks.search_outputs import token_ids
from regard.models.tasks.served_model import ExportedSignature, OutputLengths, Row
from regard.models.tasks.served_text_output import ServedTextOutput
from regard.models.tasks.text_preprocessing import is_blank, limit_characters
from regard.models.tasks.text_to_text.protection import Protection
from regard.models.tasks.text_to_text.sentence_splitting import SENTENCES, predict_by_sentence
from regard.models.tasks.text_to_text.settings import UNPAIRED
from regard.models.vocabulary import EOS


class ServedText(ServedTextOutput):
    """The graph of text-to-text models, with a tokenizer for each side."""

    prefix = "target_"
    source_outputs: OutputLengths = {
        "source_pieces": ["source_length"],
        "source_length": [],
        "source_cut": [],
    }
    source_labels = "source_pieces"
    cut_outputs: OutputLengths = {"source_cut": []}
    source_lengths = ["source_length"]

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        protection = None
        if self.protect is not None:
            settings = self._search_settings
            protection = Protection(self._model, self.tokenizers, self.protect, settings, self.tags)
        object.__setattr__(self, "protection", protection)  # it owns no variables

    def signatures(self) -> dict[str, ExportedSignature]:
        """Return the signatures; those of long texts count the sentences."""
        signatures = super().signatures()
        if self.protect is not None:
            for name in ("serving_default", "constrained", "align"):
                outputs = {**signatures[name].outputs, UNPAIRED: []}
                signatures[name] = replace(signatures[name], outputs=outputs)
        if self.split_sentences:
            default = signatures["serving_default"]
            outputs = {**default.outputs, SENTENCES: []}
            signatures["serving_default"] = replace(default, outputs=outputs)
        return signatures

    def contract(self) -> dict[str, Any]:
        # EOS and a tag do not count.
        size = {"output": "source_length", "minus": 1 + bool(self.tags), "unit": "source tokens"}
        return {**super().contract(), "size": size, "cut": "source_cut"}

    def predict(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the outputs of all texts; see also ``predict_by_sentence``."""
        if not self.split_sentences:
            return super().predict(source)
        limit = self._search_settings.max_source_length
        _, cut = token_ids(self.tokenizers["source"], source, limit)
        return predict_by_sentence(super().predict, source, cut > 0, limit, "source_cut")

    def _is_blank(self, source: tf.Tensor) -> tf.Tensor:
        shortened, _ = limit_characters(source, self._search_settings.max_source_length)
        if self.tags:  # a tag alone is no text
            tags = "|".join(map(re.escape, self.tags))
            shortened = tf.strings.regex_replace(shortened, rf"^\s*<(?:{tags})>", "")
        return is_blank(shortened)

    def _is_empty(self, source: tf.Tensor, encoded: tf.Tensor) -> tf.Tensor:
        is_blank = super()._is_empty(source, encoded)
        # Attention places tags, also where there is no other text.
        return is_blank if self.protection is None else is_blank | (encoded[:, 0] == EOS)

    def _encode(self, source: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """Return ids ``[batch, source]`` with EOS; the others as in ``ServedTextOutput``."""
        if self.protection is not None:
            return self.protection.encode(source)
        limit = self._search_settings.max_source_length
        error = None
        if self._search_settings.long_source == "refuse":
            error = f"a source has more than the {limit} tokens of max_source_length"
        tokenizer, target_tokenizer = self.tokenizers["source"], self._tokenizer
        if self._model.decoder.copies:  # both sides have one vocabulary
            shortened, _ = limit_characters(source, limit)
            tokenizer = CopyTokenizer.from_sources(tokenizer, shortened, limit)
            target_tokenizer = tokenizer
        return *token_ids(tokenizer, source, limit, error), target_tokenizer

    def _run_search(
        self, encoded: tf.Tensor, tokenizer: Any, search: Search, limits: tf.Tensor, **options: Any
    ) -> Hypotheses:
        if self.protection is None:
            return super()._run_search(encoded, tokenizer, search, limits, **options)
        return self.protection.run_search(encoded, tokenizer, search, limits, **options)

    def _constraint_ids(self, tokenizer: Any, texts: Any) -> tf.RaggedTensor:
        if self.protection is None:
            return super()._constraint_ids(tokenizer, texts)
        return tokenizer.tokenize_constraints(texts)

    def _best(self, tokenizer: Any, cut: tf.Tensor, hypotheses: Hypotheses) -> dict[str, tf.Tensor]:
        best = super()._best(tokenizer, cut, hypotheses)
        return best if self.protection is None else {**best, UNPAIRED: tokenizer.sources.faults}

    def _describe_source(
        self, source: tf.Tensor, encoded: tf.Tensor, cut: tf.Tensor, tokenizer: Any
    ) -> dict[str, tf.Tensor]:
        source, _ = limit_characters(source, self._search_settings.max_source_length)
        if self.protection is not None:
            source = tokenizer.sources.texts
            tokenizer = self.protection.source_tokenizer(tokenizer.sources)
        elif not self._model.decoder.copies:
            tokenizer = self.tokenizers["source"]
        return {
            "source_pieces": token_strings(tokenizer, encoded, source),
            "source_length": count_tokens(encoded),
            "source_cut": cut,
        }

    def _source_sizes(self, encoded: tf.Tensor, alignment: tf.Tensor) -> tf.Tensor:
        return count_tokens(encoded)

    def _limits_of(self, encoded: tf.Tensor) -> tf.Tensor:
        search = self._search_settings
        limits = limits_of_texts(search.max_length_factor, search.max_length_offset)
        return limits.of_rows(encoded)

    def _row_options(self, source: tf.Tensor, encoded: tf.Tensor) -> dict[str, tf.Tensor]:
        # Sampling depends only on the text and the seed.
        keys = tf.cast(tf.strings.to_hash_bucket_fast(source, 2**31 - 1), tf.int32)
        if not self._search_settings.min_length_factor:
            return {"keys": keys}
        shortest = tf.math.ceil(_source_tokens(encoded) * self._search_settings.min_length_factor)
        return {"keys": keys, "minimums": tf.cast(shortest, tf.int32) + 1}

    def raw_inputs(self, row: Row) -> dict[str, Any]:
        ids = tf.RaggedTensor.from_tensor(tf.constant(row["source_ids"], tf.int32)[None])
        text = detokenize(self.tokenizers["source"], ids)[0].numpy()
        if self.protect is None:
            return {"source": text}
        # The spans of the row are not known.
        return {"source": re.sub(f"[{symbol(0)}-{symbol(SLOTS - 1)}]", "", text.decode()).encode()}


def _source_tokens(encoded: tf.Tensor) -> tf.Tensor:
    """Return the numbers of tokens without EOS, float32 ``[batch]``."""
    return tf.cast(count_tokens(encoded) - 1, tf.float32)
