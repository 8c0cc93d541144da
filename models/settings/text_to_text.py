"""The section ``model`` of text-to-text tasks, and its checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import model_validator

from regard.models.settings import checks
from regard.models.settings.attention import AttentionConfig, add_default_score
from regard.models.settings.base import Positive, Problem, Rate, Section, option
from regard.models.settings.networks import (
    DecoderConfig,
    EncoderConfig,
    LuongDecoderConfig,
    PretrainedEmbeddingsConfig,
    RecurrentEncoderConfig,
)


class TextEmbeddingsConfig(PretrainedEmbeddingsConfig):
    """Word vectors in the text format of GloVe or word2vec, for the initial embeddings."""

    source: str | None = option(
        None, "File for the source tokens, .txt or .gz; null: random vectors."
    )
    target: str | None = option(
        None, "File for the target tokens, .txt or .gz; null: random vectors."
    )


class TextToTextModelConfig(Section):
    """The network: an encoder, a decoder, and attention."""

    embedding: Positive = option(256, "Width of the token embeddings and of Transformer layers.")
    dropout: Rate = option(0.2, "Dropout rate.")
    tie_embeddings: Literal["none", "output", "all"] = option(
        "none",
        "Share one matrix between the target embeddings and the softmax (output), and "
        "also with the source embeddings (all; needs tokenizer.shared).",
    )
    pretrained: TextEmbeddingsConfig | None = option(
        None, "Pretrained word vectors; null: random initialization."
    )
    encoder: EncoderConfig = option(RecurrentEncoderConfig(), "Encoder.")
    decoder: DecoderConfig = option(LuongDecoderConfig(), "Decoder.")
    attention: AttentionConfig | None = option(
        AttentionConfig(), "Attention to the source; null: only the final state of the encoder."
    )

    _default_score = model_validator(mode="before")(add_default_score)


def validate(config: Any) -> Iterator[Problem]:
    """Yield the settings of a configuration that cannot work together."""
    yield from checks.check_transformers(config)
    yield from checks.check_attention(config, checks.memory_width(config.model))
    yield from checks.check_tied_embeddings(config)
    yield from checks.check_pointer_generator(config)
    yield from checks.check_penalties(config)
    yield from _check_word_vectors(config.model)
    yield from checks.check_search(config)
    yield from checks.check_xla(config)


def _check_word_vectors(model: TextToTextModelConfig) -> Iterator[Problem]:
    pretrained = model.pretrained
    if pretrained is None:
        return
    if not pretrained.files():
        yield Problem(("model", "pretrained"), "has no file; give source, target or both")
    if model.tie_embeddings == "all" and pretrained.source and pretrained.target:
        message = "with tie_embeddings: all there is one matrix; give source or target, not both"
        yield Problem(("model", "pretrained", "target"), message)
