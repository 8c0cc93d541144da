"""Captioning: an image to a sentence that describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regard.models.settings.search import BeamSearchConfig, SearchConfig
from regard.models.tasks.captioning.settings import (
    CaptioningModelConfig,
    CaptioningPreprocessing,
    validate,
)
from regard.models.tasks.description import Description, Feature

if TYPE_CHECKING:
    from regard.models.tasks.base import Task

# An image has no tokens that limits could depend on.
_LIMITS: dict[str, Any] = {"max_length_factor": 0.0, "max_length_offset": 30}

DESCRIPTION = Description(
    name="captioning",
    summary="an image to a sentence that describes it",
    features=(
        Feature("image", "image"),
        Feature("caption", "text", role="reference", multiple=True),
        # Bounding boxes for the metric `pointing`, see models/metrics/attention.py.
        Feature("boxes", "text", role="extra", optional=True),
    ),
    model=CaptioningModelConfig,
    metrics=("bleu", "bleu_1", "bleu_2", "bleu_3", "chrf", "exact_match"),
    search=(SearchConfig, BeamSearchConfig(**_LIMITS)),
    defaults={"tokenizer": {"vocab_limit": "soft"}, "search": _LIMITS},
    validate=validate,
    has_input_length=False,
    preprocessing=CaptioningPreprocessing,
)


def create_task() -> Task:
    """Return the task; imports TensorFlow."""
    from regard.models.tasks.captioning.task import Captioning

    return Captioning()
