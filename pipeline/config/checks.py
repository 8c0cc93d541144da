"""Combinations of settings that cannot work, found before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from models.metrics import METRICS
from pipeline.config.data import Data, format_of
from pipeline.config.document import Problem
from pipeline.config.errors import suggest
from pipeline.config.model import BeamSearch, Tokenizer
from pipeline.config.sections import Config

_SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
_BYTES = 256


def impossible(config: Config) -> Iterator[Problem]:
    """Yields what cannot work together, each with the key that is most likely to be changed."""
    yield from _data(config.data, config.features)
    yield from _tokenizer(config.tokenizer)
    yield from _model(config)
    yield from _training(config)
    yield from _evaluation(config)


def _data(data: Data, features: tuple[str, ...]) -> Iterator[Problem]:
    for one, other in (("eval", "test"), ("test", "eval")):
        if getattr(data, one) is not None and getattr(data, other) is None:
            message = f"data.{one} needs data.{other} too; or leave both out and use data.split"
            yield Problem(("data", one), message)
    explicit = data.eval is not None or data.test is not None
    if explicit and data.split is not None:
        message = "cannot be given together with data.eval and data.test; remove one or the other"
        yield Problem(("data", "split"), message)
    if not explicit and data.split is None:
        yield Problem(("data", "split"), "null needs data.eval and data.test")
    if data.split is not None and data.split.eval + data.split.test >= 1.0:
        total = data.split.eval + data.split.test
        message = f"eval and test take {total:g} of the rows, which leaves none to train on"
        yield Problem(("data", "split"), message)
    sides = "{" + ", ".join(f"{side}: path" for side in features) + "}"
    for name, files in data.parts().items():
        path = ("data", name)
        kind = data.format or format_of(files)
        if kind is None:
            message = "the file names do not tell the format; set data.format to tsv, jsonl or "
            yield Problem(path, message + f"parquet, or give one path for each side: {sides}")
        elif kind == "parallel" and not isinstance(files, dict):
            yield Problem(path, f"parallel files need one path for each side: {sides}")
        elif kind != "parallel" and isinstance(files, dict):
            yield Problem(path, f"{kind} files hold all sides; give a path, a glob or a list")
        if isinstance(files, dict):
            yield from _sides(path, files, features)
    if data.columns is not None:
        yield from _columns(data, features)


def _sides(path: tuple[str, str], files: dict, features: tuple[str, ...]) -> Iterator[Problem]:
    for side in files:
        if side not in features:
            yield Problem((*path, side), "unknown side" + suggest(side, features))
    for side in features:
        if side not in files:
            yield Problem(path, f"the side {side} is missing")
    counts = {side: 1 if isinstance(paths, str) else len(paths) for side, paths in files.items()}
    if len(set(counts.values())) > 1:
        numbers = ", ".join(f"{side} {count}" for side, count in counts.items())
        yield Problem(path, f"the sides have different numbers of files: {numbers}")


def _columns(data: Data, features: tuple[str, ...]) -> Iterator[Problem]:
    columns = data.columns or {}
    kinds = {data.format or format_of(files) for files in data.parts().values()}
    for side, column in columns.items():
        path = ("data", "columns", side)
        if side not in features:
            yield Problem(path, "unknown side" + suggest(side, features))
        numbered = kinds == {"tsv"} and not data.header
        if numbered and not isinstance(column, int):
            message = f"without data.header a column is a number from 1; {column!r} was given"
            yield Problem(path, message)
        elif isinstance(column, int) and column < 1:
            yield Problem(path, f"columns count from 1; {column} was given")
        elif isinstance(column, int) and kinds <= {"jsonl", "parquet"}:
            yield Problem(path, f"a name is expected, the number {column} was given")
    for side in features:
        if side not in columns:
            yield Problem(("data", "columns"), f"the side {side} is missing")
    if len(set(columns.values())) < len(columns):
        yield Problem(("data", "columns"), "two sides are read from the same column")


def _tokenizer(tokenizer: Tokenizer) -> Iterator[Problem]:
    pieces = tokenizer.special_pieces
    path = ("tokenizer", "special_pieces")
    if len(set(pieces)) < len(pieces):
        yield Problem(path, "a piece is given twice")
    for piece in sorted(set(pieces) & set(_SPECIAL)):
        yield Problem(path, f"{piece} is always there; leave it out")
    fixed = len(_SPECIAL) + len(pieces) + (_BYTES if tokenizer.byte_fallback else 0)
    if tokenizer.vocab_size <= fixed:
        message = (
            f"{tokenizer.vocab_size} leaves no room for text: {len(_SPECIAL)} special, "
            f"{len(pieces)} given"
            + (f" and {_BYTES} byte pieces" if tokenizer.byte_fallback else " pieces")
            + f" are fixed; use more than {fixed}"
        )
        yield Problem(("tokenizer", "vocab_size"), message)


def _model(config: Config) -> Iterator[Problem]:
    encoder, decoder = config.model.encoder, config.model.decoder
    width = encoder.units * (2 if encoder.bidirectional else 1)
    if config.model.attention.score == "dot" and decoder.units != width:
        directions = f"2 x {encoder.units} " if encoder.bidirectional else ""
        message = (
            f"dot needs decoder and encoder of the same width, but the decoder has {decoder.units} "
            f"units and the encoder gives {directions and f'{directions}= '}{width}; set "
            f"model.decoder.units: {width}, or use score: general"
        )
        yield Problem(("model", "attention", "score"), message)
    search = config.search
    if isinstance(search, BeamSearch) and search.beam_size > config.tokenizer.vocab_size:
        message = (
            f"{search.beam_size} is more than the {config.tokenizer.vocab_size} pieces of "
            "tokenizer.vocab_size"
        )
        yield Problem(("search", "beam_size"), message)
    if search.max_length_factor == 0 and search.max_length_offset == 0:
        message = "with max_length_factor: 0 every hypothesis would be empty"
        yield Problem(("search", "max_length_offset"), message)


def _training(config: Config) -> Iterator[Problem]:
    training = config.training
    least = 2 * training.max_length
    if training.batch_tokens < least:
        message = (
            f"{training.batch_tokens} does not hold one row of max_length: {training.max_length} "
            f"on both sides; use at least {least}, or a lower max_length"
        )
        yield Problem(("training", "batch_tokens"), message)
    limits = (training.max_epochs, training.max_steps, training.max_minutes, training.early_stop)
    if all(limit is None for limit in limits):
        message = "training would never end; set max_epochs, max_steps, max_minutes or early_stop"
        yield Problem(("training", "max_epochs"), message)


def _evaluation(config: Config) -> Iterator[Problem]:
    evaluation = config.evaluation
    metrics = evaluation.metrics
    if not metrics:
        message = "nothing is measured; name at least one of " + ", ".join(METRICS)
        yield Problem(("evaluation", "metrics"), message)
        return
    if len(set(metrics)) < len(metrics):
        yield Problem(("evaluation", "metrics"), "a metric is given twice")
    for metric, floor in evaluation.floors.items():
        path = ("evaluation", "floors", metric)
        if metric not in metrics:
            yield Problem(path, f"{metric} is not computed; add it to evaluation.metrics")
        scale = METRICS[metric].scale
        if not 0.0 <= floor <= scale:
            message = f"{metric} goes from 0 to {scale:g}; {floor:g} was given"
            yield Problem(path, message)
    production = evaluation.production
    if production is not None and production.metric not in metrics:
        message = f"{production.metric} is not computed; add it to evaluation.metrics, or use one "
        message += f"of {', '.join(metrics)}"
        yield Problem(("evaluation", "production", "metric"), message)
    buckets = evaluation.length_buckets
    if list(buckets) != sorted(set(buckets)):
        message = f"the bounds must rise; {list(buckets)} was given"
        yield Problem(("evaluation", "length_buckets"), message)
