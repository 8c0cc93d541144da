"""Similarity: two sentences to a score."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.models.tasks.description import Description
from regard.models.tasks.similarity.settings import (
    FEATURES,
    SimilarityModelConfig,
    SimilarityPreprocessing,
    limit_features,
    validate,
)

if TYPE_CHECKING:
    from regard.models.tasks.base import Task

DESCRIPTION = Description(
    name="similarity",
    summary="two sentences to a similarity score",
    features=FEATURES,
    model=SimilarityModelConfig,
    metrics=("pearson", "spearman", "mse"),
    defaults={
        "tokenizer": {"type": "word", "shared": True, "vocab_limit": "soft"},
        "training": {"label_smoothing": 0.0},
        "evaluation": {"length_buckets": (10, 20, 30)},
    },
    validate=validate,
    limit_features=limit_features,
    preprocessing=SimilarityPreprocessing,
)


def create_task() -> Task:
    """Return the task; imports TensorFlow."""
    from regard.models.tasks.similarity.task import SentenceSimilarity

    return SentenceSimilarity()
