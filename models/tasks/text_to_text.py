"""Text-to-text tasks: translation and summarisation."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from regard.models.encoders import create_encoder
from regard.models.seq2seq import Seq2Seq
from regard.models.settings.search import SearchLimits
from regard.models.settings.text_to_text import TextToTextModelConfig
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.alignment_links import link_features, link_matrix
from regard.models.tasks.base import Columns, Tokenizers, dtype_policy, flat_values, to_ragged
from regard.models.tasks.copy_tokenizer import CopyTokenizer, detokenize
from regard.models.tasks.search_outputs import is_blank
from regard.models.tasks.seq2seq_task import TextOutputTask, append_eos
from regard.models.tasks.served_text import ServedText
from regard.models.vocabulary import PAD


class TextToText(TextOutputTask):
    """A sequence-to-sequence task with the features ``source`` and one or more ``target``."""

    served = ServedText

    def preprocess(self, inputs: Columns, tokenizers: Tokenizers, settings: Any) -> dict[str, Any]:
        """Return ``source_ids``, ``target_ids``, ``target_lengths`` (ragged int64), and links."""
        guidance = settings.guided_alignment
        links = link_features(inputs, tokenizers, guidance, settings.copies) if guidance else {}
        sources, tokenizer = flat_values(inputs["source"]), tokenizers["source"]
        if settings.tag_feature:
            tags = flat_values(inputs[settings.tag_feature])
            tagged = tf.strings.join(["<", tags, "> ", sources])
            sources = tf.where(is_blank(sources), sources, tagged)
        if settings.copies:
            tokenizer = CopyTokenizer.from_sources(tokenizer, sources)
            rows = to_ragged(inputs["target"]).value_rowids()
            tokenizers = {"target": tokenizer.for_rows(rows)}
        source = tf.cast(tokenizer.tokenize(sources), tf.int64)
        return {"source_ids": source, **self.target_features(inputs, tokenizers), **links}

    def model_inputs(self, features: Columns) -> dict[str, tf.Tensor]:
        """Return ``source``, ``target``, and ``links`` if there are any."""
        links = {"links": link_matrix(features)} if "links" in features else {}
        return {**super().model_inputs(features), **links}

    def lengths(self, features: Columns) -> tf.RaggedTensor:
        """Return the numbers of tokens of the longer side, including EOS."""
        return self.text_lengths(features, features["source_ids"].row_lengths())

    def source_input(self, features: Columns) -> tf.Tensor:
        """Return the ids of the sources as int32 with EOS."""
        return append_eos(features["source_ids"])

    def raw_inputs(self, features: Columns, tokenizers: Tokenizers) -> dict[str, Any]:
        ids = tf.cast(features["source_ids"], tf.int32)
        rows = tf.RaggedTensor.from_tensor(ids[None])
        return {"source": detokenize(tokenizers["source"], rows)[0].numpy()}

    def build(
        self,
        model: TextToTextModelConfig,
        training: TrainingConfig,
        vocabulary_sizes: Mapping[str, int],
    ) -> Seq2Seq:
        files = model.pretrained.files() if model.pretrained else {}
        # Pretrained vectors already have the right size, unless they also score tokens.
        tied = model.tie_embeddings != "none"
        encoder = create_encoder(
            model.encoder,
            vocabulary_sizes["source"],
            scale=tied or "source" not in files,
            embedding=model.embedding,
            dropout=model.dropout,
            dtype=dtype_policy(training),
        )
        scale = tied or "target" not in files
        return self.build_seq2seq(encoder, model, training, vocabulary_sizes, scale)

    def embeddings(self, model: Seq2Seq, key: str) -> tuple[Any, str]:
        return {"source": model.encoder, "target": model.decoder}[key].embedding, key

    def vocab_weights(self, model: Seq2Seq) -> list[tuple[Any, int, str]]:
        # A table that both sides share is listed twice: they have one vocabulary.
        return [(model.encoder.embedding.table, 0, "source"), *super().vocab_weights(model)]

    def source_spec(self, model: Seq2Seq) -> tf.TensorSpec:
        return tf.TensorSpec([None, None], tf.int32)

    def max_lengths(self, source: tf.Tensor, search: SearchLimits) -> tf.Tensor:
        tokens = tf.reduce_sum(tf.cast(source != PAD, tf.float32), axis=1) - 1.0
        return tf.cast(tokens * search.max_length_factor, tf.int32) + search.max_length_offset
