"""Checks of models and searches, from which tasks compose their own.

Each check reads the sections ``model``, ``training``, ``search`` and ``tokenizer`` of a
configuration, and yields problems at the keys to change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from regard.models.settings.attention import (
    HardAlignmentConfig,
    LocalPAlignmentConfig,
    LocationScoreConfig,
)
from regard.models.settings.base import Path, Problem
from regard.models.settings.networks import (
    BahdanauDecoderConfig,
    LuongDecoderConfig,
    RecurrentEncoderConfig,
    TransformerDecoderConfig,
    TransformerEncoderConfig,
    TransformerLayersConfig,
)
from regard.models.settings.search import BeamSearchConfig

_RECURRENT = (LuongDecoderConfig, BahdanauDecoderConfig)


def check_transformers(config: Any) -> Iterator[Problem]:
    """Check widths and positions of Transformer encoders and decoders."""
    model = config.model
    for name in ("encoder", "decoder"):
        part = getattr(model, name, None)
        if not isinstance(part, TransformerEncoderConfig | TransformerDecoderConfig):
            continue
        path = ("model", name)
        yield from check_heads(part, path, "model.embedding", model.embedding)
        if part.positions == "learned":
            needed, why = _positions(config, name)
            if part.max_positions < needed:
                message = f"{part.max_positions} is less than the {needed} that {why} allow"
                yield Problem((*path, "max_positions"), f"{message}; use at least {needed}")


def check_heads(
    layers: TransformerLayersConfig, path: Path, width_key: str, width: int
) -> Iterator[Problem]:
    """Check that the number of heads divides the width, and that rotary positions fit a head.

    Args:
        layers: The section with the heads.
        path: Its key.
        width_key: The key of the width.
        width: The width of the layers.
    """
    if width % layers.heads:
        divisors = [n for n in range(1, width + 1) if width % n == 0]
        near = sorted(sorted(divisors, key=lambda n: (abs(n - layers.heads), n))[:3])
        message = f"{layers.heads} heads do not divide {width_key}: {width}; use "
        message += f"{', '.join(map(str, near))}, or another width"
        yield Problem((*path, "heads"), message)
    elif layers.positions == "rotary" and width // layers.heads % 2:
        message = f"rotary needs an even width per head, but it is {width // layers.heads}"
        yield Problem((*path, "positions"), message)


def _positions(config: Any, side: str) -> tuple[int, str]:
    """Return the maximum length of a side, including EOS, and the keys that determine it."""
    search, training = config.search, config.training
    longest = search.max_source_length
    keys = "training.max_length and search.max_source_length"
    if side == "decoder":
        longest = int(longest * search.max_length_factor) + search.max_length_offset
        keys += ", .max_length_factor and .max_length_offset"
    return max(longest, training.max_length) + 1, keys


def memory_width(model: Any) -> int:
    """Return the width of the outputs of a text encoder."""
    encoder = model.encoder
    if isinstance(encoder, RecurrentEncoderConfig):
        return encoder.units * (2 if encoder.bidirectional else 1)
    return model.embedding


def check_attention(config: Any, width: int) -> Iterator[Problem]:
    """Check that the decoder supports the score and the alignment.

    Args:
        config: The configuration.
        width: The width of the encoder's outputs.
    """
    model, attention, decoder = config.model, config.model.attention, config.model.decoder
    path = ("model", "attention")
    if attention is None:
        if isinstance(decoder, TransformerDecoderConfig):
            message = "a transformer decoder needs attention; null is for recurrent decoders"
            yield Problem(path, message)
        return
    score, alignment = attention.score, attention.alignment
    if isinstance(decoder, _RECURRENT):
        if score.type in ("dot", "scaled_dot", "cosine") and decoder.units != width:
            both = isinstance(model.encoder, RecurrentEncoderConfig) and model.encoder.bidirectional
            sum_ = f"2 x {width // 2} = " if both else ""
            message = (
                f"{score.type} needs equal widths of decoder and encoder, but the decoder has "
                f"{decoder.units} units and the encoder {sum_}{width}; set "
                f"model.decoder.units: {width}, or use score: general"
            )
            yield Problem((*path, "score"), message)
    else:
        if isinstance(alignment, LocalPAlignmentConfig):
            message = (
                "local_p predicts positions from a recurrent state, which a transformer "
                "decoder does not have; use local_m or soft, or a recurrent decoder"
            )
            yield Problem((*path, "alignment"), message)
        if isinstance(alignment, HardAlignmentConfig) and alignment.training == "reinforce":
            message = (
                "reinforce needs a recurrent decoder with one choice per step; use training: "
                "straight_through, or a recurrent decoder (luong, bahdanau)"
            )
            yield Problem((*path, "alignment"), message)
    if isinstance(score, LocationScoreConfig):
        needed, why = _positions(config, "encoder")
        if score.max_source < needed:
            message = f"max_source: {score.max_source} is less than the {needed} that {why} allow"
            yield Problem((*path, "score"), f"{message}; use at least {needed}")


def check_tied_embeddings(config: Any) -> Iterator[Problem]:
    """Check that embeddings can be shared."""
    model = config.model
    path = ("model", "tie_embeddings")
    if model.tie_embeddings == "all" and not config.tokenizer.shared:
        message = "all needs one tokenizer for both sides; set tokenizer.shared: true, or use "
        yield Problem(path, message + "output")
    if model.tie_embeddings != "none" and isinstance(model.decoder, _RECURRENT):
        units = model.decoder.units
        if units != model.embedding:
            message = (
                f"{model.tie_embeddings} needs equal widths of embeddings and decoder, not "
                f"{model.embedding} and {units}; set model.embedding: {units}, or use none"
            )
            yield Problem(path, message)


def check_pointer_generator(config: Any) -> Iterator[Problem]:
    """Check that a pointer-generator can copy its source."""
    if not getattr(config.model.decoder, "pointer_generator", False):
        return
    path = ("model", "decoder", "pointer_generator")
    if config.model.attention is None:
        yield Problem(path, "copying needs model.attention; set it, or use false")
    if not config.tokenizer.shared:
        message = (
            "copying needs one tokenizer for both sides; set tokenizer.shared: true, or use false"
        )
        yield Problem(path, message)


def check_penalties(config: Any) -> Iterator[Problem]:
    """Check that a model with penalties on its attention has attention."""
    for name in config.training.penalties.active():
        if config.model.attention is None:
            message = "the model has no attention; remove it"
            yield Problem(("training", "penalties", name), message)


def check_no_attention_training(config: Any) -> Iterator[Problem]:
    """Check that a task without attention losses sets none."""
    for name in ("penalties", "reinforce"):
        field = type(config.training).model_fields[name]
        if getattr(config.training, name) != field.default:
            message = f"does not apply to the task {config.task}; remove it"
            yield Problem(("training", name), message)


def check_beam(search: BeamSearchConfig) -> Iterator[Problem]:
    """Check that a beam search can return ``n_best`` hypotheses."""
    if search.n_best > search.beam_size:
        message = f"{search.n_best} is more than beam_size: {search.beam_size}"
        yield Problem(("search", "n_best"), message)
    elif search.patience is not None and search.patience * search.beam_size < search.n_best:
        message = f"too low for n_best: {search.n_best} with beam_size: {search.beam_size}; use "
        message += f"at least {search.n_best / search.beam_size:.3g}"
        yield Problem(("search", "patience"), message)


def check_search(config: Any) -> Iterator[Problem]:
    """Check a search against the model, the tokenizer and its own limits."""
    search = config.search
    if isinstance(search, BeamSearchConfig):
        if search.beam_size > config.tokenizer.vocab_size:
            message = (
                f"{search.beam_size} is more than the {config.tokenizer.vocab_size} tokens of "
                "tokenizer.vocab_size"
            )
            yield Problem(("search", "beam_size"), message)
        yield from check_beam(search)
        if search.coverage_penalty and config.model.attention is None:
            message = "the model has no attention; remove it"
            yield Problem(("search", "coverage_penalty"), message)
    if search.max_length_factor == 0 and search.max_length_offset == 0:
        message = "with max_length_factor: 0 every hypothesis would be empty"
        yield Problem(("search", "max_length_offset"), message)
    if search.min_length_factor > search.max_length_factor:
        message = f"{search.min_length_factor:g} is more than max_length_factor: "
        message += f"{search.max_length_factor:g}"
        yield Problem(("search", "min_length_factor"), message)


def check_xla(config: Any) -> Iterator[Problem]:
    """Check that XLA can compile the model."""
    recurrent = [
        f"model.{name}.type: {part.type}"
        for name in ("encoder", "decoder")
        if isinstance(
            part := getattr(config.model, name, None), (RecurrentEncoderConfig, *_RECURRENT)
        )
    ]
    if config.training.jit_compile and recurrent:
        message = f"XLA cannot compile recurrent layers ({' and '.join(recurrent)}); use false"
        yield Problem(("training", "jit_compile"), message)
