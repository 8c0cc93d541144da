"""Similarity: two sentences in, a score out."""

from __future__ import annotations

from models.tasks.description import Description
from models.tasks.similarity.settings import FEATURES, Model, limited, problems

DESCRIPTION = Description(
    name="similarity",
    summary="two sentences to a score of how alike they are",
    features=FEATURES,
    model=Model,
    metrics=("pearson", "spearman", "mse"),
    defaults={
        "tokenizer": {"type": "word", "shared": True, "vocab_limit": "soft"},
        "training": {"label_smoothing": 0.0},
        "evaluation": {"length_buckets": (10, 20, 30)},
    },
    problems=problems,
    limited=limited,
    preprocessing=lambda model: {"unknown": model["unknown"], "scale": model["scale"]},
)
