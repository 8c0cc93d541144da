"""Captioning: an image in, a sentence out."""

from __future__ import annotations

from typing import Any

from models.settings.search import BeamSearch, Search
from models.tasks.captioning.settings import Model, problems
from models.tasks.description import Description
from models.tasks.features import Feature

# An image has no pieces to count.
_LIMITS: dict[str, Any] = {"max_length_factor": 0.0, "max_length_offset": 30}

DESCRIPTION = Description(
    name="captioning",
    summary="an image to a sentence that describes it",
    features=(
        Feature("image", "image"),
        Feature("caption", "text", role="reference", several=True),
        # Where things are, for the metric `pointing`: see models/metrics/pointing.py.
        Feature("boxes", "text", role="extra", optional=True),
    ),
    model=Model,
    metrics=("bleu", "bleu_1", "bleu_2", "bleu_3", "chrf", "exact_match"),
    search=(Search, BeamSearch(**_LIMITS)),
    defaults={"tokenizer": {"vocab_limit": "soft"}, "search": _LIMITS},
    problems=problems,
    sized=False,
    preprocessing=lambda model: dict(model["image"]),
)
