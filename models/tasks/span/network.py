"""The network of the span task."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from keras import ops

from regard.models.encoders import create_encoder
from regard.models.layers.answer_pointer import best_spans
from regard.models.settings.training import TrainingConfig
from regard.models.span import SpanReader
from regard.models.tasks.network import (
    Batch,
    BatchDecoder,
    Network,
    Processors,
    Rows,
    dtype_policy,
)
from regard.models.tasks.span.description import TEXTS, SpanModelConfig
from regard.models.tensors import Tensor
from regard.models.vocabulary import PAD


class SpanDecoder(BatchDecoder):
    """Finds the most probable answers, and returns their texts.

    Args:
        model: in float32.
        processor: the tokenizer.
        max_answer_tokens: the maximum number of tokens of an answer.
    """

    inputs = TEXTS

    def __init__(self, model: SpanReader, processor: Any, max_answer_tokens: int):
        self._model, self._processor = model, processor
        self._max_answer_tokens = max_answer_tokens

    def compute(self, passage: Tensor, question: Tensor) -> Tensor:
        """Return the first and the last token of each answer, int32 ``[batch, 2]``."""
        logits = self._model({"passage": passage, "question": question})["logits"]
        log_probs = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
        begins, ends, _ = best_spans(log_probs[:, -2], log_probs[:, -1], self._max_answer_tokens)
        return ops.concatenate([begins, ends], axis=1)

    def outputs(self, computed: np.ndarray, batch: Batch) -> list[str]:
        return self._texts(batch["passage"], computed)

    def references(self, batch: Batch) -> list[str]:
        return self._texts(batch["passage"], batch["answer"])

    def _texts(self, passages: np.ndarray, spans: np.ndarray) -> list[str]:
        rows = zip(passages, spans, strict=True)
        return self._processor.decode(
            [passage[begin : end + 1].tolist() for passage, (begin, end) in rows]
        )


class SpanNetwork(Network):
    """A passage, a question, and the span of the passage that answers it."""

    variable_axes = {"passage": (1,), "question": (1,), "answer": ()}

    def model_inputs(self, rows: Rows) -> dict[str, np.ndarray]:
        """Return ``passage``, ``question`` and the two tokens ``answer`` as int32."""
        ids = {name: rows[f"{name}_ids"].to_dense(padding=PAD).astype(np.int32) for name in TEXTS}
        return {**ids, "answer": rows["answer_tokens"].values.reshape(-1, 2).astype(np.int32)}

    def batch_decoder(
        self, model: SpanReader, processors: Processors, settings: SpanModelConfig, search: Any
    ) -> BatchDecoder:
        return SpanDecoder(model, processors["passage"], settings.max_answer_tokens)

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
