"""Pointer: points of the plane to positions among them, for example an order or a hull."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regard.models.settings.search import BeamSearchConfig, SearchConfig
from regard.models.tasks.description import Description
from regard.models.tasks.pointer.settings import (
    FEATURES,
    PointerModelConfig,
    PointerPreprocessing,
    limit_features,
    validate,
)

if TYPE_CHECKING:
    from regard.models.tasks.base import Task

# Points cannot be truncated like a text: a tour of some of them has another solution.
_LONG: dict[str, Any] = {"long_source": "refuse"}

DESCRIPTION = Description(
    name="pointer",
    summary="points of the plane to positions among them, for example an order or a hull",
    features=FEATURES,
    model=PointerModelConfig,
    metrics=("exact_match",),
    example_files="train.jsonl.gz",
    search=(SearchConfig, BeamSearchConfig(beam_size=3, length_penalty=0.0, **_LONG)),
    defaults={
        "training": {"label_smoothing": 0.0, "precision": "float32"},
        "search": _LONG,
        "evaluation": {"length_buckets": (5, 10, 20)},
    },
    validate=validate,
    limit_features=limit_features,
    preprocessing=PointerPreprocessing,
)


def create_task() -> Task:
    """Return the task; imports TensorFlow."""
    from regard.models.tasks.pointer.task import Pointing

    return Pointing()
