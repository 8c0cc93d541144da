"""Summarisation: a long text in, a short one out."""

from __future__ import annotations

from typing import Any

from models.settings.search import BeamSearch, Search
from models.settings.text_to_text import Model, problems
from models.tasks.description import Description
from models.tasks.features import Feature

# A summary has few pieces for each of its source.
_LIMITS: dict[str, Any] = {"max_length_factor": 0.25, "max_length_offset": 20}

DESCRIPTION = Description(
    name="summarisation",
    summary="a long text to a short one, with copies of its words",
    features=(Feature("source", "text"), Feature("target", "text", role="reference", several=True)),
    model=Model,
    example_files="train.jsonl.gz",
    metrics=("rouge_l", "rouge_1", "rouge_2"),
    search=(Search, BeamSearch(no_repeat_ngram=3, **_LIMITS)),
    defaults={
        "tokenizer": {"shared": True},
        "search": _LIMITS,
        "training": {"max_length": 400, "batch_tokens": 8192},
        "evaluation": {"length_buckets": (100, 200, 300), "baseline": "lead_1"},
    },
    problems=problems,
)
