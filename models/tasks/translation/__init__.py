"""Translation: a sentence in, a sentence out."""

from __future__ import annotations

from models.settings.search import BeamSearch, Search
from models.settings.text_to_text import Model, problems
from models.tasks.description import Description
from models.tasks.features import Feature

DESCRIPTION = Description(
    name="translation",
    summary="text to text, such as sentences into another language",
    features=(Feature("source", "text"), Feature("target", "text", role="reference")),
    model=Model,
    metrics=("bleu", "chrf", "exact_match"),
    example_files={"source": "train.en.gz", "target": "train.de.gz"},
    search=(Search, BeamSearch()),
    problems=problems,
)
