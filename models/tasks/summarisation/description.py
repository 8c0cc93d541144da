"""Summarisation: a long text to a short one."""

from typing import Any

from regard.core.features import Feature
from regard.core.kinds import TEXT
from regard.models.settings.search import BeamSearchConfig, SearchConfig
from regard.models.tasks.description import Description
from regard.models.tasks.text_to_text import settings as text_to_text

# A summary is much shorter than its source.
_LIMITS: dict[str, Any] = {"max_length_factor": 0.25, "max_length_offset": 20}

DESCRIPTION = Description(
    name="summarisation",
    summary="a long text to a short one, copying words where useful",
    about="The model summarises a text.",
    parts=text_to_text.PARTS,
    output="summary",
    features=(
        Feature("source", TEXT),
        Feature("target", TEXT, role="reference", multiple=True),
    ),
    other_outputs=text_to_text.OTHER_OUTPUTS,
    model=text_to_text.TextToTextModelConfig,
    example_files="train.jsonl.gz",
    metrics=("rouge_l", "rouge_1", "rouge_2"),
    search=(SearchConfig, BeamSearchConfig(no_repeat_ngram_size=3, **_LIMITS)),
    defaults={
        "tokenizer": {"shared": True},
        "search": _LIMITS,
        "training": {"max_length": 400, "batch_tokens": 8192},
        "evaluation": {"length_buckets": (100, 200, 300), "baselines": ("lead_1",)},
    },
    # Half of the abstracts of SciTLDR are 8 times as long as their summary, 0.1% over 50 times.
    data_checks={"length_ratio": {"ratio": 50.0}},
    validate=text_to_text.validate,
    preprocessing_section=text_to_text.TextPreprocessingConfig,
)
