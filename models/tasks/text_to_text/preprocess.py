"""The preprocessing of text-to-text tasks."""

from typing import Any

import tensorflow as tf

from regard.models.tasks.copy_tokenizer import CopyTokenizer
from regard.models.tasks.preprocessing import Columns, Tokenizers, single_values, to_ragged
from regard.models.tasks.protected_texts import protect_pairs
from regard.models.tasks.text_preprocessing import TextOutputPreprocessing, is_blank
from regard.models.tasks.text_to_text.alignment_links import link_features
from regard.models.tasks.text_to_text.settings import TextPreprocessingConfig


class TextPreprocessing(TextOutputPreprocessing):
    """Raw rows with a ``source`` and one or more ``target``."""

    def transform(
        self, inputs: Columns, tokenizers: Tokenizers, settings: TextPreprocessingConfig
    ) -> dict[str, Any]:
        """Return ``source_ids``, ``target_ids``, ``target_lengths`` (ragged int64), and links."""
        if settings.protect:
            targets = to_ragged(inputs["target"])
            sources = single_values(inputs, "source")
            pairs = protect_pairs(sources, targets, settings.protect)
            inputs = {**inputs, "source": pairs[0], "target": pairs[1]}
        guidance = settings.guided_alignment
        links = link_features(inputs, tokenizers, guidance, settings.copies) if guidance else {}
        sources, tokenizer = single_values(inputs, "source"), tokenizers["source"]
        if settings.tag_feature:
            tags = single_values(inputs, settings.tag_feature)
            sources = tf.where(tags == "", "", sources)  # a row without a tag is incomplete
            tagged = tf.strings.join(["<", tags, "> ", sources])
            sources = tf.where(is_blank(sources), sources, tagged)
        if settings.copies:
            tokenizer = CopyTokenizer.from_sources(tokenizer, sources)
            rows = to_ragged(inputs["target"]).value_rowids()
            tokenizers = {"target": tokenizer.for_rows(rows)}
        source = tf.cast(tokenizer.tokenize(sources), tf.int64)
        return {"source_ids": source, **self.target_features(inputs, tokenizers), **links}

    def lengths(self, features: Columns) -> tf.RaggedTensor:
        """Return the numbers of tokens of the longer side, including EOS."""
        return self.text_lengths(features, features["source_ids"].row_lengths())
