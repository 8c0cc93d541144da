"""The section ``model`` of pointers, and what cannot work with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from models.settings.attention import AdditiveScore, Matching
from models.settings.base import Positive, Problem, Section, by_type, name_or_mapping
from models.settings.checks import beam_problems, look_problems
from models.settings.encoders import RecurrentEncoder
from models.settings.layers import Rate, Transformer
from models.tasks.features import Feature

FEATURES = (
    Feature("points", "points"),
    Feature("answer", "positions", role="reference"),
)

# Where points stand in a row says nothing, so the score ``location`` is not among them.
Score = Annotated[Matching, by_type("additive"), name_or_mapping]


class SetEncoder(Transformer):
    """Self-attention layers, by default without regard to the order of the points."""

    type: Literal["transformer"] = Field(default="transformer", description="The kind of encoder.")
    layers: Positive = Field(default=3, description="Layers, one upon the other.")
    heads: Positive = Field(default=8, description="Attentions side by side; divides the width.")
    feed_forward: Positive = Field(default=256, description="Width inside the feed-forward part.")
    # One choice more than text has.
    positions: Literal["none", "sinusoidal", "learned", "rotary"] = Field(  # type: ignore[assignment]
        default="none",
        description="Whether a layer knows where a point stands in its row, and how; none: the "
        "points are a set.",
    )


Encoder = Annotated[
    Annotated[RecurrentEncoder, Tag("recurrent")] | Annotated[SetEncoder, Tag("transformer")],
    by_type("transformer"),
]


class Decoder(Section):
    """Recurrent layers that point at one of the points in each step (Vinyals 2015)."""

    cell: Literal["lstm", "gru"] = Field(default="lstm", description="The recurrent cell.")
    units: Positive = Field(default=128, description="Width of each layer.")
    layers: Positive = Field(default=1, description="Layers, one upon the other.")
    score: Score = Field(
        default=AdditiveScore(),
        description="How well a point matches the state, a name or a mapping.",
    )
    glimpse: bool = Field(
        default=True,
        description="Whether it looks at all points that can come next before it points at one "
        "(Bello 2017).",
    )
    clip: Annotated[float, Field(gt=0.0)] | None = Field(
        default=None,
        description="The greatest logit there can be, which keeps it from being too sure; null: "
        "no limit.",
    )


class Model(Section):
    """The network: an encoder of points, and a decoder that points at them."""

    width: Positive = Field(
        default=128, description="Width of the points' vectors, and of a Transformer's layers."
    )
    dropout: Rate = Field(default=0.0, description="Share of activations dropped while training.")
    encoder: Encoder = Field(default=SetEncoder(), description="Reads the points.")
    decoder: Decoder = Field(default=Decoder(), description="Points at them, one after another.")
    visits: Literal["all", "once", "any"] = Field(
        default="all",
        description="How often a point is in an answer: exactly once (orders, tours), at most "
        "once (hulls), or as often as it likes.",
    )
    least: Positive = Field(
        default=1, description="The fewest points of a row; a hull needs 3, and so does a tour."
    )
    normalise: bool = Field(
        default=True,
        description="Whether each row's points are moved and scaled, alike in both directions, "
        "until they fill -1 to 1: answers then do not depend on where the points lie and in what "
        "unit. false: where they do.",
    )


def limited(model: Model) -> tuple[Feature, ...]:
    """The features, with the fewest points."""
    points, answer = FEATURES
    return replace(points, least=model.least), answer


def problems(config: Any) -> Iterator[Problem]:
    """Yields what of a configuration cannot work together, at the key to be changed."""
    yield from _network(config.model)
    yield from _training(config.training)
    yield from look_problems(config)
    yield from _search(config.search)


def _network(model: Model) -> Iterator[Problem]:
    encoder, decoder, width = model.encoder, model.decoder, model.width
    depth = width
    if isinstance(encoder, RecurrentEncoder):
        depth = encoder.units * (2 if encoder.bidirectional else 1)
    elif width % encoder.heads:
        fitting = [n for n in range(1, width + 1) if width % n == 0]
        near = sorted(sorted(fitting, key=lambda n: (abs(n - encoder.heads), n))[:3])
        message = f"{encoder.heads} heads do not divide the width model.width: {width}; use "
        message += f"{', '.join(map(str, near))}, or another width"
        yield Problem(("model", "encoder", "heads"), message)
    elif encoder.positions == "rotary" and width // encoder.heads % 2:
        message = f"rotary turns pairs of numbers, but a head is {width // encoder.heads} wide; "
        message += "use an even width a head"
        yield Problem(("model", "encoder", "positions"), message)
    if decoder.score.type in ("dot", "scaled_dot", "cosine") and decoder.units != depth:
        message = (
            f"{decoder.score.type} needs decoder and encoder of the same width, but the decoder "
            f"has {decoder.units} units and the encoder gives {depth}; set "
            f"model.decoder.units: {depth}, or use score: general"
        )
        yield Problem(("model", "decoder", "score"), message)


def _training(training: Any) -> Iterator[Problem]:
    if training.label_smoothing:
        message = "there is no probability to give to points that cannot be chosen; use 0"
        yield Problem(("training", "label_smoothing"), message)
    if training.precision != "float32":
        message = f"{training.precision} would round the points; use float32"
        yield Problem(("training", "precision"), message)
    if training.jit_compile:
        message = "XLA cannot compile the training of recurrent layers, as a pointer has; use false"
        yield Problem(("training", "jit_compile"), message)


# Keys of every search that say nothing of points: the longest answer is as long as the row.
_OF_TEXT = (
    "max_length_factor",
    "max_length_offset",
    "min_length_factor",
    "no_repeat_ngram",
    "repetition_penalty",
    "coverage_penalty",
)


def _search(search: Any) -> Iterator[Problem]:
    for name in _OF_TEXT:
        field = type(search).model_fields.get(name)
        if field is not None and getattr(search, name) != field.default:
            message = "does not apply to points; leave it out"
            if name in ("no_repeat_ngram", "repetition_penalty"):
                message += ", and see model.visits"
            yield Problem(("search", name), message)
    if search.long_source != "refuse":
        message = "what is left of a row without its last points has another answer; use refuse"
        yield Problem(("search", "long_source"), message)
    if search.type == "beam":
        yield from beam_problems(search)
