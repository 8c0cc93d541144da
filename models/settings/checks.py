"""Checks of models and searches, from which tasks compose their own.

A check of a configuration reads its sections ``model``, ``training``, ``search`` and ``tokenizer``,
and yields problems at the keys to change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from regard.models.settings.attention import (
    HardAlignmentConfig,
    LocalPAlignmentConfig,
    LocationScoreConfig,
)
from regard.models.settings.base import Path, Problem, Section
from regard.models.settings.networks import (
    RecurrentEncoderConfig,
    RecurrentLayersConfig,
    TransformerDecoderConfig,
    TransformerEncoderConfig,
    TransformerLayersConfig,
)
from regard.models.settings.search import BeamSearchConfig, MbrSearchConfig

_SIDES = ("encoder", "modelling", "decoder")


def check_seq2seq(config: Any, width: int) -> Iterator[Problem]:
    """Check a sequence-to-sequence model with its training and its search.

    Args:
        config: The configuration.
        width: The width of the encoder's outputs.
    """
    yield from check_transformers(config)
    yield from _check_attention(config, width)
    yield from _check_tied_embeddings(config)
    yield from _check_search(config)
    yield from check_xla(config)
    if config.model.attention is None:
        message = "the model has no attention; remove it"
        for name in config.training.penalties.active():
            yield Problem(("training", "penalties", name), message)
        yield from check_unused(config, "search", ("coverage_penalty",), message)


def check_transformers(config: Any) -> Iterator[Problem]:
    """Check widths and positions of Transformer encoders and decoders."""
    model = config.model
    for name in _SIDES:
        part = getattr(model, name, None)
        if not isinstance(part, TransformerEncoderConfig | TransformerDecoderConfig):
            continue
        yield from check_heads(part, name, "model.embedding", model.embedding)
        if part.positions == "learned":
            needed, keys = _positions(config, name)
            if part.max_positions < needed:
                message = f"{part.max_positions} is less than the {needed} that {keys} allow; use "
                yield Problem(("model", name, "max_positions"), f"{message}at least {needed}")


def check_heads(
    layers: TransformerLayersConfig, name: str, width_key: str, width: int
) -> Iterator[Problem]:
    """Check that the number of heads divides the width, and that rotary positions fit a head.

    Args:
        layers: The section with the heads.
        name: Its key in the section ``model``.
        width_key: The key of the width.
        width: The width of the layers.
    """
    if width % layers.heads:
        divisors = [n for n in range(1, width + 1) if width % n == 0]
        near = sorted(sorted(divisors, key=lambda n: abs(n - layers.heads))[:3])
        message = f"{layers.heads} heads do not divide {width_key}: {width}; use "
        message += f"{', '.join(map(str, near))}, or another width"
        yield Problem(("model", name, "heads"), message)
    elif layers.positions == "rotary" and width // layers.heads % 2:
        message = f"rotary needs an even width per head, but it is {width // layers.heads}"
        yield Problem(("model", name, "positions"), message)


def _positions(config: Any, side: str) -> tuple[int, str]:
    """Return the maximum length of a side, including EOS, and the keys that determine it."""
    search, training = config.search, config.training
    if search is None:
        longest, keys = config.model.max_length, "training.max_length and model.max_length"
        return max(longest, training.max_length) + 1, keys
    longest = search.max_source_length
    keys = "training.max_length and search.max_source_length"
    if side == "decoder":
        longest = int(longest * search.max_length_factor) + search.max_length_offset
        keys += ", .max_length_factor and .max_length_offset"
    return max(longest, training.max_length) + 1, keys


def encoder_width(encoder: Any, default: int) -> int:
    """Return the width of the outputs of an encoder; ``default`` if it is not recurrent."""
    if isinstance(encoder, RecurrentEncoderConfig):
        return encoder.units * (2 if encoder.bidirectional else 1)
    return default


def check_widths(score: Any, decoder: Any, width: int, path: Path) -> Iterator[Problem]:
    """Check that a score supports the widths of the states of decoder and encoder.

    Args:
        score: The section ``score``.
        decoder: The section of a recurrent decoder.
        width: The width of the encoder's outputs.
        path: The key of the score.
    """
    if score.type in ("dot", "scaled_dot", "cosine") and decoder.units != width:
        message = (
            f"{score.type} needs equal widths of decoder and encoder, but the decoder has "
            f"{decoder.units} units and the encoder {width}; set "
            f"model.decoder.units: {width}, or use score: general"
        )
        yield Problem(path, message)


def _check_attention(config: Any, width: int) -> Iterator[Problem]:
    """Check that the decoder supports the score and the alignment."""
    attention, decoder = config.model.attention, config.model.decoder
    path = ("model", "attention")
    is_recurrent = isinstance(decoder, RecurrentLayersConfig)
    if attention is None:
        if not is_recurrent:
            message = "a transformer decoder needs attention; null is for recurrent decoders"
            yield Problem(path, message)
        return
    score, alignment = attention.score, attention.alignment
    if is_recurrent:
        yield from check_widths(score, decoder, width, (*path, "score"))
    elif isinstance(alignment, LocalPAlignmentConfig):
        message = "local_p predicts positions from a recurrent state, which a transformer decoder "
        message += "does not have; use local_m or soft, or a recurrent decoder"
        yield Problem((*path, "alignment"), message)
    elif isinstance(alignment, HardAlignmentConfig) and alignment.training == "reinforce":
        message = "reinforce needs a recurrent decoder with one choice per step; use training: "
        message += "straight_through, or a recurrent decoder (luong, bahdanau)"
        yield Problem((*path, "alignment"), message)
    if isinstance(score, LocationScoreConfig):
        needed, keys = _positions(config, "encoder")
        if score.max_source < needed:
            message = f"max_source: {score.max_source} is less than the {needed} that {keys} allow"
            yield Problem((*path, "score"), f"{message}; use at least {needed}")


def _check_tied_embeddings(config: Any) -> Iterator[Problem]:
    """Check that embeddings can be shared."""
    model, tied = config.model, config.model.tie_embeddings
    path = ("model", "tie_embeddings")
    if tied == "all" and not config.tokenizer.shared:
        message = "all needs one tokenizer for both sides; set tokenizer.shared: true, or use "
        yield Problem(path, message + "output")
    units = getattr(model.decoder, "units", model.embedding)
    if tied != "none" and units != model.embedding:
        message = f"{tied} needs equal widths of embeddings and decoder, not {model.embedding} and "
        yield Problem(path, f"{message}{units}; set model.embedding: {units}, or use none")


def check_unused(
    config: Any, section: str, names: Iterable[str], message: str
) -> Iterator[Problem]:
    """Check that keys which do not apply to a task have their defaults.

    Args:
        config: The configuration.
        section: The name of the section.
        names: The keys; those that the section lacks do not count.
        message: What is wrong, and how to fix it.
    """
    values: Section = getattr(config, section)
    fields = type(values).model_fields
    for name in names:
        if name in fields and getattr(values, name) != fields[name].default:
            yield Problem((section, name), message)


def check_no_attention_training(config: Any) -> Iterator[Problem]:
    """Check that a task without attention losses sets none."""
    message = f"does not apply to the task {config.task}; remove it"
    yield from check_unused(config, "training", ("penalties", "reinforce"), message)


def check_n_best(search: Any) -> Iterator[Problem]:
    """Check that a search can return ``n_best`` hypotheses."""
    if isinstance(search, MbrSearchConfig) and search.n_best > search.samples:
        message = f"{search.n_best} is more than samples: {search.samples}"
        yield Problem(("search", "n_best"), message)
    if not isinstance(search, BeamSearchConfig):
        return
    size, n_best = search.beam_size, search.n_best
    if n_best > size:
        yield Problem(("search", "n_best"), f"{n_best} is more than beam_size: {size}")
    elif search.patience is not None and search.patience * size < n_best:
        message = f"too low for n_best: {n_best} with beam_size: {size}; use at least "
        yield Problem(("search", "patience"), f"{message}{n_best / size:.3g}")


def _check_search(config: Any) -> Iterator[Problem]:
    """Check a search against the tokenizer and its own limits."""
    search, tokens = config.search, config.tokenizer.vocab_size
    if isinstance(search, BeamSearchConfig) and search.beam_size > tokens:
        message = f"{search.beam_size} is more than the {tokens} tokens of tokenizer.vocab_size"
        yield Problem(("search", "beam_size"), message)
    yield from check_n_best(search)
    if search.max_length_factor == 0 and search.max_length_offset == 0:
        message = "with max_length_factor: 0 every hypothesis would be empty"
        yield Problem(("search", "max_length_offset"), message)
    if search.min_length_factor > search.max_length_factor:
        message = f"{search.min_length_factor:g} is more than max_length_factor: "
        yield Problem(("search", "min_length_factor"), f"{message}{search.max_length_factor:g}")


def check_xla(config: Any) -> Iterator[Problem]:
    """Check that XLA can compile the model."""
    parts = {name: getattr(config.model, name, None) for name in _SIDES}
    recurrent = [name for name, part in parts.items() if isinstance(part, RecurrentLayersConfig)]
    if config.training.jit_compile and recurrent:
        keys = [f"model.{name}.type: {getattr(config.model, name).type}" for name in recurrent]
        message = f"XLA cannot compile recurrent layers ({' and '.join(keys)}); use false"
        yield Problem(("training", "jit_compile"), message)
