"""Pointer: points in, an order or a choice of them out."""

from __future__ import annotations

from typing import Any

from models.settings.search import BeamSearch, Search
from models.tasks.description import Description
from models.tasks.pointer.settings import FEATURES, Model, limited, problems

# Points cannot be cut off like the end of a text: a tour of some of them is no tour.
_LONG: dict[str, Any] = {"long_source": "refuse"}

DESCRIPTION = Description(
    name="pointer",
    summary="points of the plane to positions among them, such as an order or a hull",
    features=FEATURES,
    model=Model,
    metrics=("exact_match",),
    example_files="train.jsonl.gz",
    search=(Search, BeamSearch(beam_size=3, length_penalty=0.0, **_LONG)),
    defaults={
        "training": {"label_smoothing": 0.0, "precision": "float32"},
        "search": _LONG,
        "evaluation": {"length_buckets": (5, 10, 20)},
    },
    problems=problems,
    limited=limited,
    preprocessing=lambda model: {name: model[name] for name in ("visits", "normalise")},
)
