"""The network of similarity."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from regard.models.encoders import create_encoder
from regard.models.settings.training import TrainingConfig
from regard.models.similarity import Similarity
from regard.models.tasks.network import (
    Batch,
    BatchDecoder,
    Network,
    Processors,
    Rows,
    dtype_policy,
)
from regard.models.tasks.similarity.description import SIDES, ScaleConfig, SimilarityModelConfig
from regard.models.tensors import Tensor
from regard.models.vocabulary import PAD


class SimilarityDecoder(BatchDecoder):
    """Computes similarities on the scale of the data.

    Args:
        model: in float32.
        scale: the scale of the data.
    """

    inputs = SIDES

    def __init__(self, model: Similarity, scale: ScaleConfig):
        self._model, self._scale = model, scale

    def compute(self, first: Tensor, second: Tensor) -> Tensor:
        """Return similarities from 0 to 1, ``[batch]``."""
        return self._model.compare(first, second)["similarity"]

    def outputs(self, computed: np.ndarray, batch: Batch) -> list[float]:
        return self._scale.to_scale(computed).tolist()

    def references(self, batch: Batch) -> list[float]:
        return self._scale.to_scale(batch["score"]).tolist()


class SimilarityNetwork(Network):
    """Two sentences and a number: semantic similarity, relatedness, or another rating."""

    variable_axes = {"first": (1,), "second": (1,), "score": ()}

    def model_inputs(self, rows: Rows) -> dict[str, np.ndarray]:
        """Return ``first`` and ``second`` as int32, and ``score``, ``[batch]``."""
        ids = {side: rows[f"{side}_ids"].to_dense(padding=PAD).astype(np.int32) for side in SIDES}
        return {**ids, "score": rows["target"].values}

    def batch_decoder(
        self, model: Similarity, processors: Processors, settings: Any, search: Any
    ) -> BatchDecoder:
        return SimilarityDecoder(model, settings.scale)

    def build(
        self,
        model: SimilarityModelConfig,
        training: TrainingConfig,
        vocabulary_sizes: Mapping[str, int],
    ) -> Similarity:
        policy = dtype_policy(training)
        encoder = create_encoder(
            model.encoder,
            vocabulary_sizes["first"] + model.oov_buckets,
            embedding=model.embedding,
            dropout=model.dropout,
            # Pretrained vectors already have the right size, and learn slowly.
            scale=not model.pretrained,
            dtype=policy,
        )
        similarity = Similarity(
            encoder,
            pooling=model.pooling.model_dump(mode="json"),
            cross=model.cross.to_kwargs() if model.cross else None,
            comparison=model.comparison,
            hidden=model.hidden_units,
            dropout=model.dropout,
            dtype=policy,
        )
        similarity.build()
        return similarity

    def embeddings(self, model: Similarity, key: str) -> tuple[Any, str]:
        return model.encoder.embedding, "first"

    def vocab_weights(self, model: Similarity) -> list[tuple[Any, int, str]]:
        """Return the embedding; the rows of unknown words come after those of the vocabulary."""
        return [(model.encoder.embedding.table, 0, "first")]
