"""The section ``model`` of the span task, and its checks."""

from collections.abc import Iterator
from typing import Annotated, Any

from regard.core.bounds import Count, Positive, Rate, Size
from regard.core.features import Feature
from regard.core.kinds import POSITIONS, TEXT
from regard.models.settings import checks, networks
from regard.models.settings.attention import ContentScoreConfig, ScoreSection
from regard.models.settings.base import ByType, Problem, Section, name_or_mapping
from regard.models.tasks.description import Description, Parts

FEATURES = (
    Feature("passage", TEXT),
    Feature("question", TEXT),
    Feature("answer", TEXT, role="reference", multiple=True, part_of="passage"),
    Feature("answer_start", POSITIONS, role="extra", optional=True, begins="answer"),
    Feature("supporting", POSITIONS, role="extra", optional=True, part_of="passage"),
)
# The names of the texts that a model reads.
TEXTS = tuple(feature.name for feature in FEATURES if feature.role == "input")

ScoreConfig = Annotated[ContentScoreConfig, ByType("additive"), name_or_mapping]
ModellingConfig = Annotated[
    networks.RecurrentEncoderConfig | networks.TransformerEncoderConfig, ByType("recurrent")
]


class AnswerPointerConfig(Section):
    """Pointer to the begin and the end of the answer (Wang and Jiang 2016).

    Attributes:
        units: Width of the queries.
        hops: Steps of attention to the passage before the begin is chosen (Sukhbaatar 2015).
        score: Score of a token and a query: a name, or a mapping with type.
    """

    units: Size = 128
    hops: Count = 0
    score: ScoreConfig = ScoreSection.create("additive")


class SpanModelConfig(Section):
    """The network: an encoder, attention flow, a modelling layer and an answer pointer.

    Attributes:
        embedding: Width of the token embeddings and of Transformer layers.
        dropout: Dropout rate.
        max_length: Maximum tokens of a passage and of a question in the served model.
        max_answer_tokens: Maximum tokens of an answer.
        pretrained: Pretrained word vectors; null: random initialization.
        encoder: Encoder of the passage and of the question, or a list: each reads the outputs of
            the one before.
        modelling: Layers on the passage after the attention flow (Seo 2017).
        pointer: Answer pointer.
    """

    embedding: Size = 100
    dropout: Rate = 0.2
    max_length: Positive = 400
    max_answer_tokens: Size = 15
    pretrained: networks.TokenEmbeddingsConfig | None = None
    encoder: networks.EncodersConfig = networks.RecurrentEncoderConfig(units=100)
    modelling: ModellingConfig = networks.RecurrentEncoderConfig(units=100)
    pointer: AnswerPointerConfig = AnswerPointerConfig()


def validate(config: Any) -> Iterator[Problem]:
    """Yield the settings of a configuration that cannot work together."""
    model = config.model
    if not config.tokenizer.shared:
        message = "passage and question share one encoder and need one tokenizer; use true"
        yield Problem(("tokenizer", "shared"), message)
    if config.tokenizer.punctuation != "split":
        message = "an answer must not begin or end within a token; use split"
        yield Problem(("tokenizer", "punctuation"), message)
    encoding = config.data.checks.encoding
    if encoding is not None and encoding.action == "repair":
        message = "repaired passages have other offsets; use drop"
        yield Problem(("data", "checks", "encoding", "action"), message)
    width = checks.encoder_width(model.modelling, model.embedding)
    path = ("model", "pointer", "score")
    yield from checks.check_widths(model.pointer.score, model.pointer, width, path)
    yield from checks.check_layers(config)
    yield from checks.check_xla(config)


DESCRIPTION = Description(
    name="span",
    summary="a passage and a question to the span of the passage that answers it",
    about="The model finds the answer to a question in a passage.",
    parts=Parts(
        "regard.models.tasks.span",
        preprocessing="PassagePreprocessing",
        network="SpanNetwork",
        served="ServedSpan",
    ),
    output="answer",
    other_outputs=(
        *("alignment", "begin", "end", "length", "steps", "cut"),
        *(f"passage_{name}" for name in ("length", "pieces", "begins", "ends")),
    ),
    features=FEATURES,
    model=SpanModelConfig,
    metrics=("squad_exact_match", "squad_f1"),
    example_files="train.jsonl.gz",
    defaults={
        "tokenizer": {"type": "word", "shared": True, "punctuation": "split"},
        "training": {"label_smoothing": 0.0},
        "evaluation": {"length_buckets": (100, 200, 300)},
    },
    # An answer is a part of the passage, of any length.
    data_checks={"length_ratio": None},
    validate=validate,
)
