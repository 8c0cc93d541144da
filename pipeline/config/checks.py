"""Combinations of settings that cannot work, found before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from models.metrics import METRICS, unusable
from pipeline.config.data import Data, format_of
from pipeline.config.document import Problem
from pipeline.config.errors import suggest
from pipeline.config.model_checks import impossible_model
from pipeline.config.sections import Config
from pipeline.config.tokenizer import Tokenizer
from pipeline.config.training_checks import impossible_training

_SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
_BYTES = 256


def impossible(config: Config) -> Iterator[Problem]:
    """Yields what cannot work together, each with the key that is most likely to be changed."""
    yield from _data(config.data, config.features)
    yield from _tokenizer(config.tokenizer)
    yield from impossible_model(config)
    yield from impossible_training(config)
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
    if message := unusable(evaluation.tokenize):
        yield Problem(("evaluation", "tokenize"), message)
    production = evaluation.production
    if production is not None and production.metric not in metrics:
        message = f"{production.metric} is not computed; add it to evaluation.metrics, or use one "
        message += f"of {', '.join(metrics)}"
        yield Problem(("evaluation", "production", "metric"), message)
    buckets = evaluation.length_buckets
    if list(buckets) != sorted(set(buckets)):
        message = f"the bounds must rise; {list(buckets)} was given"
        yield Problem(("evaluation", "length_buckets"), message)
