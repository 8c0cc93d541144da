"""Validates the slices and thresholds of the section ``evaluation``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from regard.components.evaluator.slices import (
    LENGTH,
    OOV,
    OVERLAP_NAMES,
    PATTERN,
    TARGET_OVERLAP,
    length_names,
    share_names,
)
from regard.components.settings.evaluation import EvaluationConfig
from regard.models.metrics import METRICS
from regard.models.settings.base import Path, Problem
from regard.models.tasks.description import Feature
from regard.pipeline.config.errors import show, suggest

_KEY: Path = ("evaluation", "slices")


def validate_slices(
    evaluation: EvaluationConfig,
    features: Sequence[Feature],
    has_length: bool,
    has_overlap: bool,
) -> Iterator[Problem]:
    """Yield the problems of ``evaluation.slices`` and of all references to slices.

    Args:
        evaluation: the section.
        features: the task's features.
        has_length: whether the task's rows have a length.
        has_overlap: whether ``data.checks.target_overlap`` is enabled.
    """
    names = _slice_names(evaluation, features, has_length, has_overlap)
    yield from _validate_features(evaluation, features)
    yield from _validate_shares(evaluation)
    for name, thresholds in evaluation.slices.thresholds.items():
        path: Path = (*_KEY, "thresholds", name)
        yield from _validate_name(path, name, evaluation.slices.by, names)
        for metric, threshold in thresholds.items():
            yield from validate_threshold((*path, metric), metric, threshold, evaluation.metrics)
    if evaluation.production is not None:
        for index, name in enumerate(evaluation.production.slices):
            path = ("evaluation", "production", "slices", index)
            yield from _validate_name(path, name, evaluation.slices.by, names)


def validate_threshold(
    path: Path, metric: str, threshold: float, metrics: Sequence[str]
) -> Iterator[Problem]:
    """Yield the problems of the threshold of a metric that fits the task."""
    if metric not in metrics:
        yield Problem(path, f"{metric} is not computed; add it to evaluation.metrics")
    low, high = METRICS[metric].low, METRICS[metric].high
    if (low is not None and threshold < low) or (high is not None and threshold > high):
        limits = f"is at least {low:g}" if high is None else f"ranges from {low:g} to {high:g}"
        yield Problem(path, f"{metric} {limits}, so {threshold:g} is not possible")


def _validate_features(
    evaluation: EvaluationConfig, features: Sequence[Feature]
) -> Iterator[Problem]:
    """Slices need text features with one value per row."""
    texts = [
        feature.name for feature in features if feature.kind == "text" and not feature.multiple
    ]
    references: list[tuple[Path, str]] = [
        ((*_KEY, "by", index), name) for index, name in enumerate(evaluation.slices.by)
    ]
    references += [
        ((*_KEY, "patterns", name, "feature"), pattern.feature)
        for name, pattern in evaluation.slices.patterns.items()
    ]
    for index, name in enumerate(evaluation.slices.by):
        path = (*_KEY, "by", index)
        if name in evaluation.slices.by[:index]:
            yield Problem(path, f"{show(name)} is given twice")
        if name in (LENGTH, OOV, PATTERN, TARGET_OVERLAP):
            yield Problem(path, f"{name} is a built-in kind of slices; rename the column")
    for path, name in references:
        if name not in texts:
            message = f"{show(name)} is not a text feature{suggest(name, texts)}"
            yield Problem(path, f"{message}; data.extra can add columns")


def _validate_shares(evaluation: EvaluationConfig) -> Iterator[Problem]:
    bounds, path = evaluation.slices.oov, (*_KEY, "oov")
    if bounds == ():
        yield Problem(path, "the list is empty; use null to disable these slices")
    elif bounds is not None and list(bounds) != sorted(set(bounds)):
        yield Problem(path, f"the bounds must increase, but are {list(bounds)}")


def _slice_names(
    evaluation: EvaluationConfig,
    features: Sequence[Feature],
    has_length: bool,
    has_overlap: bool,
) -> dict[str, list[str]]:
    """Return the names of slices by kind, for kinds whose names do not depend on the rows."""
    slices = evaluation.slices
    text_roles = {feature.role for feature in features if feature.kind == "text"}
    names = {PATTERN: list(slices.patterns)}
    if has_length:
        names[LENGTH] = length_names(evaluation.length_buckets)
    if slices.oov and "input" in text_roles:
        names[OOV] = share_names(slices.oov)
    if slices.target_overlap and has_overlap and "reference" in text_roles:
        names[TARGET_OVERLAP] = list(OVERLAP_NAMES)
    return names


def _validate_name(
    path: Path, name: str, features: Sequence[str], names: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    """Yield a problem if no slice can have this name; the values of features are not known yet."""
    kind, separator, value = name.partition("=")
    kinds = [*features, *(kind for kind, values in names.items() if values)]
    if kind not in kinds:
        message = f"there is no slice {show(name)}{suggest(kind, kinds) if kinds else ''}"
        remedy = "evaluation.slices.by adds features"
        if kind == TARGET_OVERLAP:
            remedy = "it needs data.checks.target_overlap and evaluation.slices.target_overlap"
        yield Problem(path, f"{message}; {remedy}")
    elif separator and kind in names and value not in names[kind]:
        titles = [f"{kind}={value}" for value in names[kind]]
        yield Problem(path, f"there is no slice {show(name)}{suggest(name, titles)}")
