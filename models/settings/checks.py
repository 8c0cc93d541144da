"""Parts of a model and searches that cannot work together, found before anything runs.

A task's own check is made of these. Each looks at a whole configuration, whose sections ``model``,
``training``, ``search`` and ``tokenizer`` it reads, and yields problems at the key to be changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from models.settings.attention import HardAlignment, LocalPAlignment, LocationScore
from models.settings.base import Problem
from models.settings.decoders import BahdanauDecoder, LuongDecoder, TransformerDecoder
from models.settings.encoders import RecurrentEncoder, TransformerEncoder
from models.settings.search import BeamSearch

_RECURRENT = (LuongDecoder, BahdanauDecoder)


def transformer_problems(config: Any) -> Iterator[Problem]:
    """Widths and positions of Transformer encoders and decoders."""
    model = config.model
    for name in ("encoder", "decoder"):
        part = getattr(model, name, None)
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


def _positions(config: Any, side: str) -> tuple[int, str]:
    """The positions that a side can have, EOS included, and the keys that say so."""
    search, training = config.search, config.training
    longest = search.max_source_length
    keys = "training.max_length and search.max_source_length"
    if side == "decoder":
        longest = int(longest * search.max_length_factor) + search.max_length_offset
        keys += ", .max_length_factor and .max_length_offset"
    return max(longest, training.max_length) + 1, keys


def memory_width(model: Any) -> int:
    """The depth of what an encoder of text gives."""
    encoder = model.encoder
    if isinstance(encoder, RecurrentEncoder):
        return encoder.units * (2 if encoder.bidirectional else 1)
    return model.embedding


def attention_problems(config: Any, width: int) -> Iterator[Problem]:
    """Scores and alignments that the decoder cannot have; ``width`` is that of the memory."""
    model, attention, decoder = config.model, config.model.attention, config.model.decoder
    path = ("model", "attention")
    if attention is None:
        if isinstance(decoder, TransformerDecoder):
            message = "a transformer decoder sees its source through attention alone; null is for "
            yield Problem(path, message + "recurrent decoders")
        return
    score, alignment = attention.score, attention.alignment
    if isinstance(decoder, _RECURRENT):
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


def tying_problems(config: Any) -> Iterator[Problem]:
    """Embeddings that cannot be shared."""
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


def copying_problems(config: Any) -> Iterator[Problem]:
    """Decoders that cannot copy their source."""
    if not getattr(config.model.decoder, "pointer_generator", False):
        return
    path = ("model", "decoder", "pointer_generator")
    if config.model.attention is None:
        yield Problem(path, "what is copied is what is looked at; give model.attention, or false")
    if not config.tokenizer.shared:
        message = "copies need one tokenizer for both sides; set tokenizer.shared: true, or false"
        yield Problem(path, message)


def penalty_problems(config: Any) -> Iterator[Problem]:
    """Penalties on looks that there are not."""
    for name in config.training.penalties.chosen():
        if config.model.attention is None:
            message = "without attention nothing is looked at; leave it out"
            yield Problem(("training", "penalties", name), message)


def look_problems(config: Any) -> Iterator[Problem]:
    """What trains looks, of tasks that train them by their answers alone."""
    for name in ("penalties", "reinforce"):
        field = type(config.training).model_fields[name]
        if getattr(config.training, name) != field.default:
            message = f"{config.task} learns from its answers alone; leave it out"
            yield Problem(("training", name), message)


def beam_problems(search: BeamSearch) -> Iterator[Problem]:
    """Beams that end before there are as many hypotheses as are wanted."""
    if search.n_best > search.beam_size:
        message = f"{search.n_best} is more than beam_size: {search.beam_size} can give"
        yield Problem(("search", "n_best"), message)
    elif search.patience is not None and search.patience * search.beam_size < search.n_best:
        message = f"too little for n_best: {search.n_best} of beam_size: {search.beam_size}; use "
        message += f"at least {search.n_best / search.beam_size:.3g}"
        yield Problem(("search", "patience"), message)


def search_problems(config: Any) -> Iterator[Problem]:
    """Searches that cannot find anything, or not with this model."""
    search = config.search
    if isinstance(search, BeamSearch):
        if search.beam_size > config.tokenizer.vocab_size:
            message = (
                f"{search.beam_size} is more than the {config.tokenizer.vocab_size} pieces of "
                "tokenizer.vocab_size"
            )
            yield Problem(("search", "beam_size"), message)
        yield from beam_problems(search)
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


def xla_problems(config: Any) -> Iterator[Problem]:
    """Recurrent layers whose training is to be compiled."""
    recurrent = [
        f"model.{name}.type: {part.type}"
        for name in ("encoder", "decoder")
        if isinstance(part := getattr(config.model, name, None), (RecurrentEncoder, *_RECURRENT))
    ]
    if config.training.jit_compile and recurrent:
        message = "XLA cannot compile the training of recurrent layers, such as "
        yield Problem(("training", "jit_compile"), f"{message}{' and '.join(recurrent)}; use false")
