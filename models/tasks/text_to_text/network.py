"""The network of text-to-text tasks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from regard.core.ragged import Ragged
from regard.models.encoders import create_encoder
from regard.models.seq2seq import Seq2Seq
from regard.models.settings.search import SearchLimits
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.greedy_decoding import OutputLimits, limits_of_texts
from regard.models.tasks.network import Rows, dtype_policy
from regard.models.tasks.seq2seq_network import TextOutputNetwork, append_eos
from regard.models.tasks.text_to_text.settings import TextToTextModelConfig


class TextNetwork(TextOutputNetwork):
    """A sequence-to-sequence model whose source is a text."""

    variable_axes = {"source": (1,), "target": (1,), "links": (1, 2)}

    def model_inputs(self, rows: Rows) -> dict[str, np.ndarray]:
        """Return ``source``, ``target``, and ``links`` if there are any."""
        links = {"links": link_matrix(rows)} if "links" in rows else {}
        return {**super().model_inputs(rows), **links}

    def source_input(self, rows: Rows) -> np.ndarray:
        """Return the ids of the sources as int32 with EOS, ``[batch, source]``."""
        return append_eos(rows["source_ids"])

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
            scale=model.scale_embeddings and (tied or "source" not in files),
            embedding=model.embedding,
            dropout=model.dropout,
            dtype=dtype_policy(training),
        )
        scale = model.scale_embeddings and (tied or "target" not in files)
        return self.build_seq2seq(encoder, model, training, vocabulary_sizes, scale)

    def output_limits(self, search: SearchLimits) -> OutputLimits:
        return limits_of_texts(search.max_length_factor, search.max_length_offset)

    def embeddings(self, model: Seq2Seq, key: str) -> tuple[Any, str]:
        return {"source": model.encoder, "target": model.decoder}[key].embedding, key

    def vocab_weights(self, model: Seq2Seq) -> list[tuple[Any, int, str]]:
        # A table that both sides share is listed twice: they have one vocabulary.
        return [(model.encoder.embedding.table, 0, "source"), *super().vocab_weights(model)]


def link_matrix(rows: Rows) -> np.ndarray:
    """Return which tokens of rows are linked, float32 ``[batch, target + 1, source + 1]``.

    All tokens of linked units are linked; the EOS of each side is not.

    Args:
        rows: With the columns of ``alignment_links.link_features``.
    """
    flat = rows["links"].to_dense(padding=-1)
    links = flat.reshape(len(flat), -1, 2)
    source = _tokens_of_units(rows["source_units"], links[:, :, 0])
    target = _tokens_of_units(rows["target_units"], links[:, :, 1])
    linked = np.matmul(target.transpose(0, 2, 1), source) > 0
    return np.pad(linked.astype(np.float32), [(0, 0), (0, 1), (0, 1)])


def _tokens_of_units(units: Ragged, linked: np.ndarray) -> np.ndarray:
    """Return which tokens belong to linked units ``[batch, links]``.

    Returns:
        float32 ``[batch, links, tokens]``.
    """
    # Padding is -2 here and -1 there: a missing unit belongs to no link.
    return (linked[:, :, None] == units.to_dense(padding=-2)[:, None]).astype(np.float32)
