"""The network of the span task."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from regard.models.encoders import create_encoder
from regard.models.settings.training import TrainingConfig
from regard.models.span import SpanReader
from regard.models.tasks.network import Network, Rows, dtype_policy
from regard.models.tasks.span.description import TEXTS, SpanModelConfig
from regard.models.vocabulary import PAD


class SpanNetwork(Network):
    """A passage, a question, and the span of the passage that answers it."""

    variable_axes = {"passage": (1,), "question": (1,), "answer": ()}

    def model_inputs(self, rows: Rows) -> dict[str, np.ndarray]:
        """Return ``passage``, ``question`` and the two tokens ``answer`` as int32."""
        ids = {name: rows[f"{name}_ids"].to_dense(padding=PAD).astype(np.int32) for name in TEXTS}
        return {**ids, "answer": rows["answer_tokens"].values.reshape(-1, 2).astype(np.int32)}

    def build(
        self, model: SpanModelConfig, training: TrainingConfig, vocabulary_sizes: Mapping[str, int]
    ) -> SpanReader:
        policy = dtype_policy(training)
        common = {"embedding": model.embedding, "dropout": model.dropout, "dtype": policy}
        encoder = create_encoder(
            model.encoder,
            vocabulary_sizes["passage"],
            # Pretrained vectors already have the right size, and learn slowly.
            scale=not model.pretrained,
            **common,
        )
        modelling = create_encoder(model.modelling, None, dimensions=4 * encoder.depth, **common)
        reader = SpanReader(
            encoder, modelling, **model.pointer.to_kwargs(), dropout=model.dropout, dtype=policy
        )
        reader.build()
        return reader

    def embeddings(self, model: SpanReader, key: str) -> tuple[Any, str]:
        return model.encoder.embedding, "passage"

    def vocab_weights(self, model: SpanReader) -> list[tuple[Any, int, str]]:
        return [(model.encoder.embedding.table, 0, "passage")]
