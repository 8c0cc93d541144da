"""Networks and searches that cannot work, found before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.config.attention import Attention, HardAlignment, LocalPAlignment, LocationScore
from pipeline.config.document import Problem
from pipeline.config.model import (
    BahdanauDecoder,
    LuongDecoder,
    Model,
    RecurrentEncoder,
    TransformerDecoder,
    TransformerEncoder,
)
from pipeline.config.search import BeamSearch
from pipeline.config.sections import Config

_RECURRENT = (LuongDecoder, BahdanauDecoder)


def impossible_model(config: Config) -> Iterator[Problem]:
    """Yields what of ``model`` and ``search`` cannot work together, at the key to be changed."""
    model = config.model
    yield from _transformers(config)
    if model.attention is not None:
        yield from _attention(config, model.attention)
    elif isinstance(model.decoder, TransformerDecoder):
        message = "a transformer decoder sees its source through attention alone; null is for "
        yield Problem(("model", "attention"), message + "recurrent decoders")
    yield from _embeddings(config)
    yield from _search(config)


def _transformers(config: Config) -> Iterator[Problem]:
    model = config.model
    for name, part in (("encoder", model.encoder), ("decoder", model.decoder)):
        if not isinstance(part, TransformerEncoder | TransformerDecoder):
            continue
        path = ("model", name)
        if model.embedding % part.heads:
            fitting = [n for n in range(1, model.embedding + 1) if model.embedding % n == 0]
            near = sorted(fitting, key=lambda n: (abs(n - part.heads), n))[:3]
            message = (
                f"{part.heads} heads do not divide the width model.embedding: {model.embedding}; "
                f"use {', '.join(map(str, sorted(near)))}, or another width"
            )
            yield Problem((*path, "heads"), message)
        elif part.positions == "rotary" and model.embedding // part.heads % 2:
            message = (
                f"rotary turns pairs of numbers, but a head is {model.embedding // part.heads} "
                "wide; use an even width a head"
            )
            yield Problem((*path, "positions"), message)
        if part.positions == "learned":
            needed, why = _positions(config, name)
            if part.max_positions < needed:
                message = f"{part.max_positions} is less than the {needed} that {why} allow"
                yield Problem((*path, "max_positions"), f"{message}; use at least {needed}")


def _positions(config: Config, side: str) -> tuple[int, str]:
    """The positions that a side can have, EOS included, and the keys that say so."""
    search, training = config.search, config.training
    longest = search.max_source_length
    keys = "training.max_length and search.max_source_length"
    if side == "decoder":
        longest = int(longest * search.max_length_factor) + search.max_length_offset
        keys += ", .max_length_factor and .max_length_offset"
    return max(longest, training.max_length) + 1, keys


def memory_width(model: Model) -> int:
    """The depth of what the encoder gives."""
    encoder = model.encoder
    if isinstance(encoder, RecurrentEncoder):
        return encoder.units * (2 if encoder.bidirectional else 1)
    return model.embedding


def _attention(config: Config, attention: Attention) -> Iterator[Problem]:
    model, score, alignment = config.model, attention.score, attention.alignment
    path, decoder = ("model", "attention"), config.model.decoder
    if isinstance(decoder, _RECURRENT):
        width = memory_width(model)
        if score.type in ("dot", "scaled_dot", "cosine") and decoder.units != width:
            both = isinstance(model.encoder, RecurrentEncoder) and model.encoder.bidirectional
            sum_ = f"2 x {width // 2} = " if both else ""
            message = (
                f"{score.type} needs decoder and encoder of the same width, but the decoder has "
                f"{decoder.units} units and the encoder gives {sum_}{width}; set "
                f"model.decoder.units: {width}, or use score: general"
            )
            yield Problem((*path, "score"), message)
    else:
        if isinstance(alignment, LocalPAlignment):
            message = (
                "local_p predicts where to look from a recurrent state, which a transformer "
                "decoder has not; use local_m or soft, or a recurrent decoder (luong, bahdanau)"
            )
            yield Problem((*path, "alignment"), message)
        if isinstance(alignment, HardAlignment) and alignment.training == "reinforce":
            message = (
                "reinforce needs the one choice a step of a recurrent decoder; use training: "
                "straight_through, or a recurrent decoder (luong, bahdanau)"
            )
            yield Problem((*path, "alignment"), message)
    if isinstance(score, LocationScore):
        needed, why = _positions(config, "encoder")
        if score.max_source < needed:
            message = f"max_source: {score.max_source} is less than the {needed} that {why} allow"
            yield Problem((*path, "score"), f"{message}; use at least {needed}")


def _embeddings(config: Config) -> Iterator[Problem]:
    model = config.model
    path = ("model", "tie_embeddings")
    if model.tie_embeddings == "all" and not config.tokenizer.shared:
        message = "all needs one tokenizer for both sides; set tokenizer.shared: true, or use "
        yield Problem(path, message + "output")
    if model.tie_embeddings != "none" and isinstance(model.decoder, _RECURRENT):
        units = model.decoder.units
        if units != model.embedding:
            message = (
                f"{model.tie_embeddings} needs embeddings as wide as the decoder, but they have "
                f"{model.embedding} and {units}; set model.embedding: {units}, or use none"
            )
            yield Problem(path, message)
    pretrained = model.pretrained
    if pretrained is None:
        return
    if pretrained.source is None and pretrained.target is None:
        yield Problem(("model", "pretrained"), "names no file; give source, target or both")
    if model.tie_embeddings == "all" and pretrained.source and pretrained.target:
        message = "with tie_embeddings: all there is one matrix; give source or target, not both"
        yield Problem(("model", "pretrained", "target"), message)


def _search(config: Config) -> Iterator[Problem]:
    search = config.search
    if isinstance(search, BeamSearch):
        if search.beam_size > config.tokenizer.vocab_size:
            message = (
                f"{search.beam_size} is more than the {config.tokenizer.vocab_size} pieces of "
                "tokenizer.vocab_size"
            )
            yield Problem(("search", "beam_size"), message)
        if search.n_best > search.beam_size:
            message = f"{search.n_best} is more than beam_size: {search.beam_size} can give"
            yield Problem(("search", "n_best"), message)
        if search.coverage_penalty and config.model.attention is None:
            message = "there is no coverage without attention; leave it out"
            yield Problem(("search", "coverage_penalty"), message)
    if search.max_length_factor == 0 and search.max_length_offset == 0:
        message = "with max_length_factor: 0 every hypothesis would be empty"
        yield Problem(("search", "max_length_offset"), message)
    if search.min_length_factor > search.max_length_factor:
        message = f"{search.min_length_factor:g} is more than max_length_factor: "
        message += f"{search.max_length_factor:g}"
        yield Problem(("search", "min_length_factor"), message)
