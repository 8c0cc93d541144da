"""Combinations of settings that cannot work, found before anything runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from regard.components.data.config_rules import validate_data
from regard.components.settings.data import DriftCheckConfig
from regard.components.settings.evaluation import EvaluationConfig, GoldAlignmentConfig
from regard.components.settings.tokenizer import TokenizerConfig
from regard.models.metrics import metrics_for, missing_tokenizer_package
from regard.models.settings.base import Path, Problem
from regard.models.settings.networks import TransformerDecoderConfig
from regard.models.tasks.description import Feature
from regard.pipeline.config.beam import validate_beam
from regard.pipeline.config.config import Config
from regard.pipeline.config.errors import show, suggest
from regard.pipeline.config.kubeflow_checks import validate_kubeflow
from regard.pipeline.config.schedule import validate_schedule
from regard.pipeline.config.slice_checks import validate_slices, validate_threshold
from regard.pipeline.config.training_checks import validate_training
from regard.pipeline.config.tune_checks import validate_tuning

_SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
_BYTES = 256


def validate(config: Config) -> Iterator[Problem]:
    """Yield conflicts between sections, each at the key that most likely has to change."""
    problems = list(_validate(config))
    yield from problems
    if config.tune is not None and not problems:
        yield from validate_tuning(config, _validate)


def _validate(config: Config) -> Iterator[Problem]:
    """Validate everything except the section ``tune``."""
    yield from validate_data(config.data, config.features)
    if config.tokenizer is not None:
        yield from _tokenizer(config.tokenizer)
    yield from config.description.validate(config)
    yield from validate_training(config)
    yield from _evaluation(config)
    yield from validate_beam(config.beam)
    if config.schedule is not None:
        yield from validate_schedule(config.schedule, config.data)
    yield from validate_kubeflow(config)


def _tokenizer(tokenizer: TokenizerConfig) -> Iterator[Problem]:
    symbols = tokenizer.user_defined_symbols
    path = ("tokenizer", "user_defined_symbols")
    if len(set(symbols)) < len(symbols):
        yield Problem(path, "a symbol is listed twice")
    for symbol in sorted(set(symbols) & set(_SPECIAL)):
        yield Problem(path, f"{symbol} is always there; leave it out")
    if tokenizer.word_list is not None and tokenizer.type != "word":
        message = f"a word list needs a word tokenizer, not type {tokenizer.type}; set "
        yield Problem(("tokenizer", "word_list"), f"{message}tokenizer.type: word, or use null")
    fixed = len(_SPECIAL) + len(symbols) + (_BYTES if tokenizer.byte_fallback else 0)
    if tokenizer.vocab_size <= fixed:
        message = (
            f"{tokenizer.vocab_size} leaves no room for text: {len(_SPECIAL)} special, "
            f"{len(symbols)} user-defined"
            + (f" and {_BYTES} byte symbols" if tokenizer.byte_fallback else " symbols")
            + f" are fixed; use more than {fixed}"
        )
        yield Problem(("tokenizer", "vocab_size"), message)


def _evaluation(config: Config) -> Iterator[Problem]:
    evaluation = config.evaluation
    metrics = evaluation.metrics
    choices = metrics_for(config.description.output_kind)
    if not metrics:
        message = "nothing is measured; name at least one of " + ", ".join(choices)
        yield Problem(("evaluation", "metrics"), message)
        return
    if len(set(metrics)) < len(metrics):
        yield Problem(("evaluation", "metrics"), "a metric is given twice")
    unknown = [
        (path, metric) for path, metric in _used_metrics(evaluation) if metric not in choices
    ]
    for path, metric in unknown:
        yield Problem(path, f"{show(metric)} is not a choice{suggest(metric, choices)}")
    if unknown:  # later messages would only follow from this one
        return
    for metric, floor in evaluation.thresholds.items():
        yield from validate_threshold(("evaluation", "thresholds", metric), metric, floor, metrics)
    texts = [f for f in config.features if f.role == "input" and f.kind == "text"]
    if evaluation.baseline is not None and (not texts or config.description.output_kind != "text"):
        message = f"{evaluation.baseline} answers a text with a text, which this task does not; "
        yield Problem(("evaluation", "baseline"), f"{message}use null")
    if message := missing_tokenizer_package(evaluation.tokenize):
        yield Problem(("evaluation", "tokenize"), message)
    sized = config.description.has_input_length
    has_overlap_check = config.data.checks.target_overlap is not None
    yield from validate_slices(evaluation, config.stored_features, sized, has_overlap_check)
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
    evaluation: EvaluationConfig, metrics: Sequence[str], features: tuple[Feature, ...]
) -> Iterator[Problem]:
    """Check that AER and its gold links occur together."""
    extras = [feature.name for feature in features if feature.role == "extra"]
    if evaluation.alignment is None:
        if "aer" in metrics:
            message = "aer needs evaluation.alignment, which says where the gold links are"
            yield Problem(("evaluation", "metrics", metrics.index("aer")), message)
    elif "aer" not in metrics:
        yield Problem(("evaluation", "alignment"), "is for aer; add it to evaluation.metrics")
    elif evaluation.alignment.gold not in extras:
        path = ("evaluation", "alignment", "gold")
        gold = evaluation.alignment.gold
        yield Problem(path, f"{show(gold)} is no column of data.extra{suggest(gold, extras)}")


def _heads(alignment: GoldAlignmentConfig | None, decoder: Any) -> Iterator[Problem]:
    """Check that the selected layer and head exist."""
    path = ("evaluation", "alignment")
    if alignment is None or (alignment.layer is None and alignment.head is None):
        return
    if alignment.layer is None:
        yield Problem((*path, "head"), "is one of a layer; give evaluation.alignment.layer too")
    elif not isinstance(decoder, TransformerDecoderConfig):
        message = "only a transformer decoder has layers of heads; leave it out, or use null"
        yield Problem((*path, "layer"), message)
    else:
        for name, maximum in (("layer", decoder.layers), ("head", decoder.heads)):
            number = getattr(alignment, name)
            if number is not None and number > maximum:
                message = (
                    f"{number} is too high: model.decoder.{name}s is {maximum}; use 1 to {maximum}"
                )
                yield Problem((*path, name), message)


def _drift(config: Config) -> Iterator[Problem]:
    """Check that drift checks which fail a run have something to compare with."""
    if config.evaluation.production is not None:
        return
    for name, check in config.data.checks:
        if isinstance(check, DriftCheckConfig) and check.action == "fail":
            message = "nothing is compared with where evaluation.production is null; use warn"
            yield Problem(("data", "checks", name, "action"), message)


def _answer_checks(config: Config) -> Iterator[Problem]:
    """Check that output checks which block a model apply to the task."""
    checks = config.evaluation.checks
    texts = any(f.role == "input" and f.kind == "text" for f in config.features)
    for name in type(checks).model_fields:
        if getattr(checks, name).action != "fail":
            continue
        if config.description.output_kind != "text":
            message = "the answers of this task are no texts; leave it out"
            yield Problem(("evaluation", "checks", name), message)
        elif name == "copies" and not texts:
            message = "there is no text to copy; leave it out"
            yield Problem(("evaluation", "checks", name), message)


def _samples(evaluation: EvaluationConfig) -> Iterator[Problem]:
    """Check that there are enough samples for the significance test."""
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


def _used_metrics(evaluation: EvaluationConfig) -> Iterator[tuple[Path, str]]:
    """Yield every metric of the section with its key."""
    for index, metric in enumerate(evaluation.metrics):
        yield ("evaluation", "metrics", index), metric
    for metric in evaluation.thresholds:
        yield ("evaluation", "thresholds", metric), metric
    for name, thresholds in evaluation.slices.thresholds.items():
        for metric in thresholds:
            yield ("evaluation", "slices", "thresholds", name, metric), metric
    if evaluation.production is not None:
        yield ("evaluation", "production", "metric"), evaluation.production.metric
