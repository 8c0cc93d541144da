"""Checks of models and searches, from which tasks compose their own.

A check of a configuration reads its sections ``model``, ``training``, ``search`` and ``tokenizer``,
and yields problems at the keys to change.
"""

from collections.abc import Iterator
from typing import Any

from regard.models.settings.attention import ScoreSection
from regard.models.settings.base import KeyPath, Problem
from regard.models.settings.networks import (
    FeedForwardDecoderConfig,
    PositionsConfig,
    RecurrentLayersConfig,
    TransformerLayersConfig,
)
from regard.models.settings.search import BeamSearchConfig

_SIDES = ("encoder", "modelling", "decoder")


def check_seq2seq(config: Any, width: int) -> Iterator[Problem]:
    """Check a sequence-to-sequence model with its training and its search.

    Args:
        config: The configuration.
        width: The width of the encoder's outputs.
    """
    yield from check_layers(config)
    yield from _check_attention(config, width)
    yield from _check_tied_embeddings(config)
    yield from _check_search(config)
    yield from check_xla(config)
    if config.model.attention is None:
        message = "the model has no attention; remove it"
        for name in config.training.penalties.active():
            yield Problem(("training", "penalties", name), message)
        if getattr(config.search, "coverage_penalty", 0.0):
            yield Problem(("search", "coverage_penalty"), message)


def check_layers(config: Any, width_key: str = "model.embedding") -> Iterator[Problem]:
    """Check the heads and positions of encoders and decoders.

    Args:
        config: The configuration.
        width_key: The key of the width of the embeddings.
    """
    for name in _SIDES:
        side, key = getattr(config.model, name, None), width_key
        width = getattr(config.model, width_key.removeprefix("model."))
        if side == ():
            yield Problem(("model", name), "the list is empty; give at least one encoder")
        for i, part in enumerate(_parts(side)):
            path = ("model", name, i) if isinstance(side, tuple) else ("model", name)
            if isinstance(part, TransformerLayersConfig):
                yield from _check_heads(part.heads, (*path, "heads"), key, width)
                depth = width // part.heads
                if part.positions == "rotary" and depth % 2 and not width % part.heads:
                    message = f"rotary needs an even width per head, but it is {depth}"
                    yield Problem((*path, "positions"), message)
            if i and not getattr(part, "read_end", True):
                message = "only the first encoder of a list reads tokens; set it there"
                yield Problem((*path, "read_end"), message)
            if isinstance(part, PositionsConfig):
                yield from _check_positions(config, part, path)
            if isinstance(side, tuple):
                key, width = f"the width of the outputs of model.{name}.{i}", part.width(width)


def _parts(side: Any) -> list[Any]:
    """Return the encoders of a list, or the only one."""
    return list(side) if isinstance(side, tuple) else [side]


def _check_heads(heads: int, path: KeyPath, width_key: str, width: int) -> Iterator[Problem]:
    """Check that the number of heads divides the width."""
    if width % heads:
        divisors = [n for n in range(1, width + 1) if width % n == 0]
        near = sorted(sorted(divisors, key=lambda n: abs(n - heads))[:3])
        message = f"{heads} heads do not divide {width_key}: {width}; use "
        yield Problem(path, f"{message}{', '.join(map(str, near))}, or another width")


def _check_positions(config: Any, part: PositionsConfig, path: KeyPath) -> Iterator[Problem]:
    """Check that there are enough learned positions, and positions to concatenate."""
    if part.positions == "learned":
        needed, keys = _positions(config, str(path[1]))
        if part.max_positions < needed:
            message = f"{part.max_positions} is less than the {needed} that {keys} allow; use "
            yield Problem((*path, "max_positions"), f"{message}at least {needed}")
    elif getattr(part, "first_position", 0) and not part.positions.startswith("sinusoidal"):
        message = f"positions: {part.positions} has no number of the first one; remove it"
        yield Problem((*path, "first_position"), message)
    elif part.position_merge == "concat" and not part.positions.startswith("sinusoidal"):
        message = f"{part.positions} positions are no vectors; use add, or positions: sinusoidal"
        yield Problem((*path, "position_merge"), f"{message} or learned")


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
    """Return the width of the outputs of an encoder, or of a list, for that of the embeddings."""
    for part in _parts(encoder):
        default = part.width(default)
    return default


def check_widths(score: Any, decoder: Any, width: int, path: KeyPath) -> Iterator[Problem]:
    """Check that a score supports the widths of the decoder's states and of the keys.

    Args:
        score: The section ``score``.
        decoder: The section of a recurrent decoder.
        width: The width of the encoder's outputs, or of their part that is the key.
        path: The key of the score.
    """
    if _needs_equal_widths(score) and decoder.units != width:
        message = (
            f"{score.type} needs equal widths of decoder and encoder, but the decoder has "
            f"{decoder.units} units and the keys of the encoder {width}; set "
            f"model.decoder.units: {width}, or use score: general"
        )
        yield Problem(path, message)


def _needs_equal_widths(score: Any) -> bool:
    return getattr(score, "needs_equal_depths", False)  # those of other packages may lack it


def check_no_coverage(score: Any, path: KeyPath) -> Iterator[Problem]:
    """Check that a score does not depend on the attention of previous steps.

    Args:
        score: The section ``score``.
        path: Its key.
    """
    if getattr(score, "coverage", False):
        message = "needs a recurrent decoder that attends to its source (luong, bahdanau); use "
        yield Problem((*path, "coverage"), f"{message}false")


def _check_attention(config: Any, width: int) -> Iterator[Problem]:
    """Check that the decoder supports the score and the alignment."""
    attention, decoder = config.model.attention, config.model.decoder
    path = ("model", "attention")
    is_recurrent = isinstance(decoder, RecurrentLayersConfig)
    is_feed_forward = isinstance(decoder, FeedForwardDecoderConfig)
    if attention is None:
        if is_feed_forward:
            return
        if not is_recurrent:
            message = "a transformer decoder needs attention; null is for recurrent decoders"
            yield Problem(path, message)
        kinds = [isinstance(part, RecurrentLayersConfig) for part in _parts(config.model.encoder)]
        if any(kinds) and not kinds[-1]:
            message = "null needs the final states of the last encoder; put the recurrent one last"
            yield Problem(path, message)
        return
    score, alignment, heads = attention.score, attention.alignment, attention.heads
    is_reinforced = getattr(alignment, "is_reinforced", False)
    if attention.values == "split":
        if width < 2:
            message = f"split needs an encoder with a width of at least 2, not {width}; use shared"
            yield Problem((*path, "values"), message)
        if heads == 1:
            width //= 2
    if is_recurrent:
        if heads == 1:
            yield from check_widths(score, decoder, width, (*path, "score"))
        yield from _check_heads(heads, (*path, "heads"), "the width of the encoder", width)
    elif is_feed_forward:
        query = decoder.context_size * config.model.embedding
        if _needs_equal_widths(score) and query != width:
            message = f"{score.type} needs equal widths, but the query, model.decoder.context_size "
            message += f"embeddings, has {query} and the keys of the encoder {width}; use general"
            yield Problem((*path, "score"), message)
    elif getattr(alignment, "needs_recurrent_query", False):
        message = f"{alignment.type} predicts positions from a recurrent state, which a transformer"
        message += " decoder does not have; use local_m or soft, or a recurrent decoder"
        yield Problem((*path, "alignment"), message)
    elif is_reinforced:
        message = "reinforce needs a recurrent decoder with one choice per step; use training: "
        message += "straight_through, or a recurrent decoder (luong, bahdanau)"
        yield Problem((*path, "alignment"), message)
    if heads > 1 and not is_recurrent:
        message = "is of recurrent decoders; use 1"
        if not is_feed_forward:
            message = "is of recurrent decoders; use model.decoder.heads, and 1 here"
        yield Problem((*path, "heads"), message)
    elif heads > 1 and is_reinforced:
        message = f"reinforce needs one choice per step, not {heads}; use heads: 1, or training: "
        yield Problem((*path, "heads"), f"{message}straight_through")
    if not is_recurrent:
        yield from check_no_coverage(score, (*path, "score"))
    elif getattr(score, "coverage", False) and heads > 1:
        message = f"needs one attention per step, not {heads}; use false, or set "
        yield Problem((*path, "score", "coverage"), f"{message}model.attention.heads: 1")
    elif getattr(score, "coverage", False) and not getattr(decoder, "input_feeding", True):
        message = "needs the attention of the previous step; set model.decoder.input_feeding: true"
        yield Problem((*path, "score", "coverage"), message)
    if isinstance(score, ScoreSection) and hasattr(score, "max_source"):
        needed, keys = _positions(config, "encoder")
        if score.max_source < needed:
            message = f"max_source: {score.max_source} is less than the {needed} that {keys} allow"
            yield Problem((*path, "score"), f"{message}; use at least {needed}")


def _check_tied_embeddings(config: Any) -> Iterator[Problem]:
    """Check that embeddings can be shared."""
    model, tied = config.model, config.model.tie_embeddings
    path = ("model", "tie_embeddings")
    start = config.training.warm_start
    keeps_vocabulary = bool(start and start.keep_tokenizer)  # an imported model may have tied ones
    if tied == "all" and not config.tokenizer.shared and not keeps_vocabulary:
        message = "all needs one tokenizer for both sides; set tokenizer.shared: true, or use "
        yield Problem(path, message + "output")
    units = getattr(model.decoder, "units", model.embedding)
    if tied != "none" and isinstance(model.decoder, FeedForwardDecoderConfig):
        yield Problem(path, "the softmax of a feed_forward decoder also reads the source; use none")
    elif tied != "none" and units != model.embedding:
        message = f"{tied} needs equal widths of embeddings and decoder, not {model.embedding} and "
        yield Problem(path, f"{message}{units}; set model.embedding: {units}, or use none")


def _check_search(config: Any) -> Iterator[Problem]:
    """Check a search against the tokenizer."""
    search, tokens = config.search, config.tokenizer.vocab_size
    if isinstance(search, BeamSearchConfig) and search.beam_size > tokens:
        message = f"{search.beam_size} is more than the {tokens} tokens of tokenizer.vocab_size"
        yield Problem(("search", "beam_size"), message)


def check_xla(config: Any) -> Iterator[Problem]:
    """Check that XLA can compile the model."""
    keys = []
    for name in _SIDES:
        side = getattr(config.model, name, None)
        for i, part in enumerate(_parts(side)):
            if isinstance(part, RecurrentLayersConfig):
                key = f"model.{name}.{i}" if isinstance(side, tuple) else f"model.{name}"
                keys.append(f"{key}.type: {part.model_dump()['type']}")
    if config.training.jit_compile and keys:
        message = f"XLA cannot compile recurrent layers ({' and '.join(keys)}); use false"
        yield Problem(("training", "jit_compile"), message)
