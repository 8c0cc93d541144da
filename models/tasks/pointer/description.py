"""The section ``model`` of the pointer task, and its checks."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

from regard.core.bounds import Positive, PositiveFloat, Rate, Size
from regard.core.features import Feature
from regard.core.kinds import POINTS, POSITIONS
from regard.models.settings import checks, networks
from regard.models.settings.attention import ContentScoreConfig, ScoreSection
from regard.models.settings.base import ByType, Problem, Section, name_or_mapping
from regard.models.settings.search import BeamSearchConfig, SearchConfig
from regard.models.tasks.description import Description, Parts

FEATURES = (Feature("points", POINTS), Feature("answer", POSITIONS, role="reference"))

Visits = Literal["all", "once", "any"]
# The order of points has no meaning, so the score ``location`` does not apply.
ScoreConfig = Annotated[ContentScoreConfig, ByType("additive"), name_or_mapping]


class SetEncoderConfig(networks.TransformerLayersConfig):
    """Self-attention layers, by default independent of the order of the points.

    Attributes:
        type: Encoder type.
        layers: Number of layers.
        heads: Number of attention heads; must divide the width.
        feed_forward: Width of the feed-forward layer.
        positions: Position encoding; none: the points are a set.
    """

    type: Literal["transformer"] = "transformer"
    layers: Size = 3
    heads: Size = 8
    feed_forward: Size = 256
    positions: networks.TransformerPositions = "none"


EncoderConfig = Annotated[networks.RecurrentEncoderConfig | SetEncoderConfig, ByType("transformer")]


class PointerDecoderConfig(Section):
    """Recurrent layers that select one of the points at each step (Vinyals 2015).

    Attributes:
        cell: Recurrent cell.
        units: Width of each layer.
        layers: Number of layers.
        score: Score of a point and the state: a name, or a mapping with type.
        glimpse: Attend to all possible points before selecting one (Bello 2017).
        clip: Maximum absolute logit, which prevents overconfidence; null: no limit.
    """

    cell: Literal["lstm", "gru", "rnn"] = "lstm"
    units: Size = 128
    layers: Size = 1
    score: ScoreConfig = ScoreSection.create("additive")
    glimpse: bool = True
    clip: PositiveFloat | None = None


class PointerModelConfig(Section):
    """The network: an encoder of points, and a pointer decoder.

    Attributes:
        width: Width of the point embeddings and of Transformer layers.
        dropout: Dropout rate.
        encoder: Encoder, or a list: each reads the outputs of the one before.
        decoder: Decoder.
        dimensions: Number of coordinates of a point.
        visits: How often an output contains each point. all: exactly once (orders, tours); once: at
            most once (hulls); any: any number of times.
        min_points: Minimum points of a row, for example 3 for hulls and tours.
        normalise: Scale the points of each row to -1 to 1, keeping the aspect ratio, so that
            outputs do not depend on position and unit of the points.
    """

    width: Size = 128
    dropout: Rate = 0.0
    encoder: networks.OneOrList[EncoderConfig] = SetEncoderConfig()
    decoder: PointerDecoderConfig = PointerDecoderConfig()
    dimensions: Positive = 2
    visits: Visits = "all"
    min_points: Positive = 1
    normalise: bool = True


class PointerPreprocessingConfig(Section):
    """The settings that the preprocessing depends on."""

    dimensions: Positive = 2
    visits: Visits
    normalise: bool


def limit_features(model: PointerModelConfig) -> tuple[Feature, ...]:
    """Return the features with the minimum number of points and their dimensions."""
    points, answer = FEATURES
    points = replace(points, min_points=model.min_points, dimensions=model.dimensions)
    return points, answer


# Keys of searches that only apply to text: an output has at most as many positions as points.
_TEXT_KEYS = ("max_length_factor", "max_length_offset", "min_length_factor", "coverage_penalty")
_PLANE_METRIC = "hull_area"


def validate(config: Any) -> Iterator[Problem]:
    """Yield the settings of a configuration that cannot work together."""
    model, training = config.model, config.training
    yield from checks.check_layers(config, "model.width")
    width = checks.encoder_width(model.encoder, model.width)
    path = ("model", "decoder", "score")
    yield from checks.check_widths(model.decoder.score, model.decoder, width, path)
    yield from checks.check_no_coverage(model.decoder.score, path)
    if training.precision != "float32":
        message = f"{training.precision} would round the coordinates; use float32"
        yield Problem(("training", "precision"), message)
    if training.jit_compile:
        message = "XLA cannot compile the recurrent layers of a pointer decoder; use false"
        yield Problem(("training", "jit_compile"), message)
    if config.search.long_source != "refuse":
        message = "a row without its last points has another solution; use refuse"
        yield Problem(("search", "long_source"), message)
    if model.dimensions != 2 and _PLANE_METRIC in config.evaluation.metrics:
        message = f"{_PLANE_METRIC} is defined in the plane, not in {model.dimensions} dimensions; "
        yield Problem(("evaluation", "metrics"), f"{message}remove it")


# Points cannot be truncated like a text: a tour of some of them has another solution.
_LONG: dict[str, Any] = {"long_source": "refuse"}

DESCRIPTION = Description(
    name="pointer",
    summary="points to positions among them, for example an order or a hull",
    about="The model puts points in an order, for example that of a short tour.",
    parts=Parts(
        "regard.models.tasks.pointer",
        preprocessing="PointPreprocessing",
        network="PointerNetwork",
        served="ServedPointer",
    ),
    output="positions",
    other_outputs=("alignment", "length", "points_length"),
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
    preprocessing_section=PointerPreprocessingConfig,
    unused_keys={
        **{f"search.{name}": "which has no texts" for name in _TEXT_KEYS},
        "search.no_repeat_ngram_size": "whose points model.visits lets repeat or not",
    },
)
