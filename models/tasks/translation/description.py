"""Translation: text to text, for example sentences into another language."""

from regard.core.features import Feature
from regard.core.kinds import TEXT
from regard.models.settings.search import BeamSearchConfig, SearchConfig
from regard.models.tasks.description import Description
from regard.models.tasks.text_to_text import settings as text_to_text

DESCRIPTION = Description(
    name="translation",
    summary="text to text, for example sentences into another language",
    about="The model translates a text.",
    parts=text_to_text.PARTS,
    output="translation",
    features=(Feature("source", TEXT), Feature("target", TEXT, role="reference")),
    other_outputs=text_to_text.OTHER_OUTPUTS,
    model=text_to_text.TextToTextModelConfig,
    metrics=("bleu", "chrf", "exact_match"),
    example_files={"source": "train.en.gz", "target": "train.de.gz"},
    search=(SearchConfig, BeamSearchConfig()),
    defaults={"evaluation": {"baselines": ("copy", "most_frequent")}},
    validate=text_to_text.validate,
    preprocessing_section=text_to_text.TextPreprocessingConfig,
    has_independent_sentences=True,
)
