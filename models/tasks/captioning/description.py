"""The section ``model`` of captioning, and its checks."""

import functools
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import model_validator

from regard.core.bounds import Positive, Rate, Size
from regard.core.features import Feature
from regard.core.kinds import IMAGE, TEXT
from regard.models.settings import checks
from regard.models.settings.attention import DecoderAttentionConfig
from regard.models.settings.base import Listed, Problem, Section
from regard.models.settings.networks import (
    BahdanauDecoderConfig,
    DecoderConfig,
    add_default_score,
)
from regard.models.settings.search import BeamSearchConfig, SearchConfig
from regard.models.tasks.description import Description, Parts


class ImageConfig(Section):
    """The size that all images are resized to.

    Attributes:
        height: Height in pixels.
        width: Width in pixels.
    """

    height: Size = 64
    width: Size = 64


class ConvolutionalEncoderConfig(Section):
    """Convolutions that compute a grid of features (Xu 2015).

    Attributes:
        type: Encoder type.
        channels: Channels of each stage; a stage halves height and width.
        units: Width of the features that the decoder attends to.
        self_attention: Self-attention of the cells of the grid (Zhang 2019).
        positions: Position encoding of rows and columns, in addition to their coordinates (Carion
            2020).
    """

    type: Literal["convolutional"] = "convolutional"
    channels: Listed[Positive] = (32, 64, 128)
    units: Size = 128
    self_attention: bool = False
    positions: Literal["none", "sinusoidal", "learned"] = "sinusoidal"


class CaptioningModelConfig(Section):
    """The network: an image encoder, a decoder, and attention.

    Attributes:
        image: Size that all images are resized to.
        embedding: Width of the token embeddings and of Transformer layers.
        dropout: Dropout rate.
        tie_embeddings: Share one matrix between the caption embeddings and the softmax (output).
        encoder: Image encoder.
        decoder: Decoder.
        attention: Attention to the grid; null: the decoder only receives the mean of the grid.
    """

    image: ImageConfig = ImageConfig()
    embedding: Size = 128
    dropout: Rate = 0.2
    tie_embeddings: Literal["none", "output"] = "none"
    encoder: ConvolutionalEncoderConfig = ConvolutionalEncoderConfig()
    decoder: DecoderConfig = BahdanauDecoderConfig(units=256, readout="tanh")
    attention: DecoderAttentionConfig | None = DecoderAttentionConfig()

    _default_score = model_validator(mode="before")(
        functools.partial(add_default_score, decoder_type="bahdanau")
    )


class CaptioningPreprocessingConfig(Section):
    """The settings that the preprocessing depends on."""

    image: ImageConfig


def validate(config: Any) -> Iterator[Problem]:
    """Yield the settings of a configuration that cannot work together."""
    model = config.model
    factor = 2 ** len(model.encoder.channels)
    for side, size in model.image:
        if size % factor:
            message = f"{size} is not a multiple of {factor}: each of the "
            message += f"{len(model.encoder.channels)} stages of model.encoder.channels halves it"
            yield Problem(("model", "image", side), message)
    if not model.encoder.channels:
        message = "the list is empty; give the channels of at least one stage"
        yield Problem(("model", "encoder", "channels"), message)
    if model.encoder.positions != "none" and model.encoder.units < 2:
        message = "position encodings need at least 2 units; or set model.encoder.positions to none"
        yield Problem(("model", "encoder", "units"), message)
    yield from checks.check_seq2seq(config, model.encoder.units)
    if model.attention is not None:
        if not getattr(model.attention.score, "reads_content", True):
            message = "images have no sequence of positions; use another score"
            yield Problem(("model", "attention", "score"), message)
        alignment = model.attention.alignment
        if getattr(alignment, "needs_sequence", False):
            message = f"{alignment.type} needs a sequence, which an image is not; use soft or hard"
            yield Problem(("model", "attention", "alignment"), message)
    if getattr(model.decoder, "pointer_generator", False):
        message = "images have no tokens to copy; use false"
        yield Problem(("model", "decoder", "pointer_generator"), message)


# An image has no tokens that limits could depend on.
_LIMITS: dict[str, Any] = {"max_length_factor": 0.0, "max_length_offset": 30}

DESCRIPTION = Description(
    name="captioning",
    summary="an image to a sentence that describes it",
    about="The model describes an image.",
    parts=Parts(
        "regard.models.tasks.captioning",
        preprocessing="ImagePreprocessing",
        network="CaptioningNetwork",
        served="ServedCaptioner",
    ),
    output="caption",
    other_outputs=("alignment", "confidence", "pieces", "length", "cut"),
    features=(
        Feature("image", IMAGE),
        Feature("caption", TEXT, role="reference", multiple=True),
        # Bounding boxes for the metric `pointing`, see models/metrics/attention.py.
        Feature("boxes", TEXT, role="extra", optional=True),
    ),
    model=CaptioningModelConfig,
    metrics=("bleu", "bleu_1", "bleu_2", "bleu_3", "chrf", "exact_match"),
    search=(SearchConfig, BeamSearchConfig(**_LIMITS)),
    defaults={"search": _LIMITS, "evaluation": {"baselines": ("most_frequent", "chance")}},
    validate=validate,
    has_input_length=False,
    preprocessing_section=CaptioningPreprocessingConfig,
    unused_keys={
        "search.max_source_length": "whose images have no tokens",
        "search.long_source": "whose images have no tokens",
        "search.max_length_factor": "whose images have no tokens; set max_length_offset",
        "search.min_length_factor": "whose images have no tokens",
    },
)
