"""Combinations of settings that cannot work, found before anything runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from components.corpus_gen.span_paths import mistakes
from components.corpus_gen.spans import FEATURE as SPAN
from components.predictions import RESERVED
from models.metrics import judging, unusable
from models.settings.base import Path, Problem
from models.settings.decoders import TransformerDecoder
from models.tasks.features import Feature
from pipeline.config.beam import impossible_beam
from pipeline.config.data import Data, DriftCheck, format_of
from pipeline.config.errors import show, suggest
from pipeline.config.evaluation import Alignment, Evaluation
from pipeline.config.kubeflow_checks import impossible_kubeflow
from pipeline.config.schedule import impossible_schedule
from pipeline.config.sections import Config
from pipeline.config.slice_checks import impossible_floor, impossible_slices
from pipeline.config.tokenizer import Tokenizer
from pipeline.config.training_checks import impossible_training
from pipeline.config.tune_checks import impossible_tuning

_SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
_BYTES = 256


def impossible(config: Config) -> Iterator[Problem]:
    """Yields what cannot work together, each with the key that is most likely to be changed."""
    found = list(_impossible(config))
    yield from found
    if config.tune is not None and not found:
        yield from impossible_tuning(config, _impossible)


def _impossible(config: Config) -> Iterator[Problem]:
    """All but the section ``tune``."""
    yield from _data(config.data, config.features)
    if config.tokenizer is not None:
        yield from _tokenizer(config.tokenizer)
    yield from config.description.problems(config)
    yield from impossible_training(config)
    yield from _evaluation(config)
    yield from impossible_beam(config.beam)
    if config.schedule is not None:
        yield from impossible_schedule(config.schedule, config.data)
    yield from impossible_kubeflow(config)


def _data(data: Data, features: tuple[Feature, ...]) -> Iterator[Problem]:
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
    names = [feature.name for feature in features]
    for index, name in enumerate(data.extra):
        reserved = name in RESERVED or (name == SPAN and data.has_spans)
        if names.count(name) > 1 or reserved or name.endswith("_file"):
            message = f"{show(name)} has a meaning already; give the column another name"
            yield Problem(("data", "extra", index), message)
    wanted = [feature.name for feature in features if not feature.optional]
    sides = "{" + ", ".join(f"{side}: path" for side in wanted) + "}"
    if data.images is not None and not any(feature.kind == "image" for feature in features):
        yield Problem(("data", "images"), "this task reads no images; leave it out")
    if data.split is not None and data.split.by is not None:
        deciding = [
            f.name
            for f in features
            if f.kind in ("text", "image") and f.role != "extra" and not (f.several or f.optional)
        ]
        if data.split.by not in deciding:
            message = f"{data.split.by} is no feature that can decide"
            yield Problem(("data", "split", "by"), message + suggest(data.split.by, deciding))
    for key, message in mistakes({**data.parts(), "spans": data.spans.model_dump()}):
        yield Problem(key, message)
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


def _sides(path: tuple[str, str], files: dict, features: tuple[Feature, ...]) -> Iterator[Problem]:
    names = [feature.name for feature in features]
    for side in files:
        if side not in names:
            yield Problem((*path, side), "unknown side" + suggest(side, names))
    for feature in features:
        if feature.name not in files and not feature.optional:
            yield Problem(path, f"the side {feature.name} is missing")
    counts = {side: 1 if isinstance(paths, str) else len(paths) for side, paths in files.items()}
    if len(set(counts.values())) > 1:
        numbers = ", ".join(f"{side} {count}" for side, count in counts.items())
        yield Problem(path, f"the sides have different numbers of files: {numbers}")


def _columns(data: Data, features: tuple[Feature, ...]) -> Iterator[Problem]:
    columns, names = data.columns or {}, [feature.name for feature in features]
    kinds = {data.format or format_of(files) for files in data.parts().values()}
    for side, column in columns.items():
        path = ("data", "columns", side)
        if side not in names:
            yield Problem(path, "unknown side" + suggest(side, names))
        numbered = kinds == {"tsv"} and not data.header
        if numbered and not isinstance(column, int):
            message = f"without data.header a column is a number from 1; {column!r} was given"
            yield Problem(path, message)
        elif isinstance(column, int) and column < 1:
            yield Problem(path, f"columns count from 1; {column} was given")
        elif isinstance(column, int) and kinds <= {"jsonl", "parquet"}:
            yield Problem(path, f"a name is expected, the number {column} was given")
    for feature in features:
        if feature.name not in columns and not feature.optional:
            yield Problem(("data", "columns"), f"the side {feature.name} is missing")
    if len(set(columns.values())) < len(columns):
        yield Problem(("data", "columns"), "two sides are read from the same column")


def _tokenizer(tokenizer: Tokenizer) -> Iterator[Problem]:
    pieces = tokenizer.special_pieces
    path = ("tokenizer", "special_pieces")
    if len(set(pieces)) < len(pieces):
        yield Problem(path, "a piece is given twice")
    for piece in sorted(set(pieces) & set(_SPECIAL)):
        yield Problem(path, f"{piece} is always there; leave it out")
    if tokenizer.words is not None and tokenizer.type != "word":
        message = f"words can only be added to words, not to {tokenizer.type} pieces; set "
        yield Problem(("tokenizer", "words"), f"{message}tokenizer.type: word, or use null")
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
    choices = judging(config.description.answers)
    if not metrics:
        message = "nothing is measured; name at least one of " + ", ".join(choices)
        yield Problem(("evaluation", "metrics"), message)
        return
    if len(set(metrics)) < len(metrics):
        yield Problem(("evaluation", "metrics"), "a metric is given twice")
    unknown = [(path, metric) for path, metric in _named(evaluation) if metric not in choices]
    for path, metric in unknown:
        yield Problem(path, f"{show(metric)} is not a choice{suggest(metric, choices)}")
    if unknown:  # what follows from it would only confuse
        return
    for metric, floor in evaluation.floors.items():
        yield from impossible_floor(("evaluation", "floors", metric), metric, floor, metrics)
    texts = [f for f in config.features if f.role == "input" and f.kind == "text"]
    if evaluation.baseline is not None and (not texts or config.description.answers != "text"):
        message = f"{evaluation.baseline} answers a text with a text, which this task does not; "
        yield Problem(("evaluation", "baseline"), f"{message}use null")
    if message := unusable(evaluation.tokenize):
        yield Problem(("evaluation", "tokenize"), message)
    sized = config.description.sized
    looked = config.data.checks.target_overlap is not None
    yield from impossible_slices(evaluation, config.stored_features, sized, looked)
    yield from _drift(config)
    yield from _answer_checks(config)
    yield from _alignment(evaluation, metrics, config.features)
    yield from _heads(evaluation.alignment, getattr(config.model, "decoder", None))
    yield from _samples(evaluation)
    production = evaluation.production
    if production is not None and production.metric not in metrics:
        message = f"{production.metric} is not computed; add it to evaluation.metrics, or use one "
        message += f"of {', '.join(metrics)}"
        yield Problem(("evaluation", "production", "metric"), message)
    buckets = evaluation.length_buckets
    if list(buckets) != sorted(set(buckets)):
        message = f"the bounds must rise; {list(buckets)} was given"
        yield Problem(("evaluation", "length_buckets"), message)


def _alignment(
    evaluation: Evaluation, metrics: Sequence[str], features: tuple[Feature, ...]
) -> Iterator[Problem]:
    """The metric and what it needs belong together."""
    extras = [feature.name for feature in features if feature.role == "extra"]
    if evaluation.alignment is None:
        if "aer" in metrics:
            message = "aer needs evaluation.alignment, which says where the gold links are"
            yield Problem(("evaluation", "metrics", metrics.index("aer")), message)
    elif "aer" not in metrics:
        yield Problem(("evaluation", "alignment"), "is for aer; add it to evaluation.metrics")
    elif evaluation.alignment.gold not in extras:
        path = ("evaluation", "alignment", "gold")
        named = evaluation.alignment.gold
        yield Problem(path, f"{show(named)} is no column of data.extra{suggest(named, extras)}")


def _heads(alignment: Alignment | None, decoder: Any) -> Iterator[Problem]:
    """The layer and the head that are to be measured are there."""
    path = ("evaluation", "alignment")
    if alignment is None or (alignment.layer is None and alignment.head is None):
        return
    if alignment.layer is None:
        yield Problem((*path, "head"), "is one of a layer; give evaluation.alignment.layer too")
    elif not isinstance(decoder, TransformerDecoder):
        message = "only a transformer decoder has layers of heads; leave it out, or use null"
        yield Problem((*path, "layer"), message)
    else:
        for name, most in (("layer", decoder.layers), ("head", decoder.heads)):
            number = getattr(alignment, name)
            if number is not None and number > most:
                message = f"{number} is too high: model.decoder.{name}s is {most}; use 1 to {most}"
                yield Problem((*path, name), message)


def _drift(config: Config) -> Iterator[Problem]:
    """Checks that are to end a run, and have nothing to compare with."""
    if config.evaluation.production is not None:
        return
    for name, check in config.data.checks:
        if isinstance(check, DriftCheck) and check.action == "fail":
            message = "nothing is compared with where evaluation.production is null; use warn"
            yield Problem(("data", "checks", name, "action"), message)


def _answer_checks(config: Config) -> Iterator[Problem]:
    """Checks that are to keep a model back, where there is nothing to check."""
    checks = config.evaluation.checks
    texts = any(f.role == "input" and f.kind == "text" for f in config.features)
    for name in type(checks).model_fields:
        if getattr(checks, name).action != "fail":
            continue
        if config.description.answers != "text":
            message = "the answers of this task are no texts; leave it out"
            yield Problem(("evaluation", "checks", name), message)
        elif name == "copies" and not texts:
            message = "there is no text to copy; leave it out"
            yield Problem(("evaluation", "checks", name), message)


def _samples(evaluation: Evaluation) -> Iterator[Problem]:
    """As many samples as the test of the comparison needs."""
    production, samples = evaluation.production, evaluation.samples
    if production is None or production.test is None:
        return
    if not samples:
        if "test" in production.model_fields_set:
            message = f"{production.test} needs samples; raise evaluation.samples, or use null"
            yield Problem(("evaluation", "production", "test"), message)
    elif 1 / (samples + 1) >= production.significance:
        needed = math.ceil(1 / production.significance)
        level = f"evaluation.production.significance: {production.significance:g}"
        message = f"with {samples} no difference can be significant at {level}; use {needed:,}"
        yield Problem(("evaluation", "samples"), message)


def _named(evaluation: Evaluation) -> Iterator[tuple[Path, str]]:
    """Where metrics are named."""
    for index, metric in enumerate(evaluation.metrics):
        yield ("evaluation", "metrics", index), metric
    for metric in evaluation.floors:
        yield ("evaluation", "floors", metric), metric
    for name, floors in evaluation.slices.floors.items():
        for metric in floors:
            yield ("evaluation", "slices", "floors", name, metric), metric
    if evaluation.production is not None:
        yield ("evaluation", "production", "metric"), evaluation.production.metric
