"""Slices that cannot be, and floors that cannot be reached, found before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from components.slice_names import (
    LENGTH,
    OOV,
    PATTERN,
    SEEN,
    SEEN_NAMES,
    length_names,
    share_names,
)
from models.metrics import METRICS
from models.settings.base import Path, Problem
from models.tasks.features import Feature
from pipeline.config.errors import show, suggest
from pipeline.config.evaluation import Evaluation

_PLACE: Path = ("evaluation", "slices")


def impossible_slices(
    evaluation: Evaluation, features: Sequence[Feature], sized: bool, looked: bool
) -> Iterator[Problem]:
    """Yields what of ``evaluation.slices`` cannot be, and what is asked of slices there are not.

    Args:
        evaluation: the section.
        features: those of the task.
        sized: whether the task's rows have a length.
        looked: whether ``data.checks.target_overlap`` is on.
    """
    known = _known(evaluation, features, sized, looked)
    yield from _features(evaluation, features)
    yield from _shares(evaluation)
    for name, floors in evaluation.slices.floors.items():
        path: Path = (*_PLACE, "floors", name)
        yield from _unknown(path, name, evaluation.slices.by, known)
        for metric, floor in floors.items():
            yield from impossible_floor((*path, metric), metric, floor, evaluation.metrics)
    if evaluation.production is not None:
        for index, name in enumerate(evaluation.production.slices):
            path = ("evaluation", "production", "slices", index)
            yield from _unknown(path, name, evaluation.slices.by, known)


def impossible_floor(
    path: Path, metric: str, floor: float, metrics: Sequence[str]
) -> Iterator[Problem]:
    """Yields what is wrong with a floor of a metric that fits the task."""
    if metric not in metrics:
        yield Problem(path, f"{metric} is not computed; add it to evaluation.metrics")
    low, high = METRICS[metric].low, METRICS[metric].high
    if (low is not None and floor < low) or (high is not None and floor > high):
        to = f"is at least {low:g}" if high is None else f"goes from {low:g} to {high:g}"
        yield Problem(path, f"{metric} {to}; {floor:g} was given")


def _features(evaluation: Evaluation, features: Sequence[Feature]) -> Iterator[Problem]:
    """Slices are by features of text, of which a row has one."""
    texts = [feature.name for feature in features if feature.kind == "text" and not feature.several]
    named: list[tuple[Path, str]] = [
        ((*_PLACE, "by", index), name) for index, name in enumerate(evaluation.slices.by)
    ]
    named += [
        ((*_PLACE, "patterns", name, "feature"), pattern.feature)
        for name, pattern in evaluation.slices.patterns.items()
    ]
    for index, name in enumerate(evaluation.slices.by):
        path = (*_PLACE, "by", index)
        if name in evaluation.slices.by[:index]:
            yield Problem(path, f"{show(name)} is given twice")
        if name in (LENGTH, OOV, PATTERN, SEEN):
            yield Problem(path, f"other slices are called {name}; give the column another name")
    for path, name in named:
        if name not in texts:
            message = f"{show(name)} is no feature of text{suggest(name, texts)}"
            yield Problem(path, f"{message}; data.extra can add columns")


def _shares(evaluation: Evaluation) -> Iterator[Problem]:
    """Bounds of what is unknown among the words of an input."""
    bounds, path = evaluation.slices.oov, (*_PLACE, "oov")
    if bounds == ():
        yield Problem(path, "there is no bound; use null for no such slices")
    elif bounds is not None and list(bounds) != sorted(set(bounds)):
        yield Problem(path, f"the bounds must rise; {list(bounds)} was given")


def _known(
    evaluation: Evaluation, features: Sequence[Feature], sized: bool, looked: bool
) -> dict[str, list[str]]:
    """The names of slices by kind, of those kinds whose names are known before there are rows."""
    slices = evaluation.slices
    texts = {feature.role for feature in features if feature.kind == "text"}
    known = {PATTERN: list(slices.patterns)}
    if sized:
        known[LENGTH] = length_names(evaluation.length_buckets)
    if slices.oov and "input" in texts:
        known[OOV] = share_names(slices.oov)
    if slices.seen and looked and "reference" in texts:
        known[SEEN] = list(SEEN_NAMES)
    return known


def _unknown(
    path: Path, name: str, by: Sequence[str], known: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    """A name that no slice can have; the values of features are known to the test split alone."""
    kind, found, value = name.partition("=")
    kinds = [*by, *(kind for kind, values in known.items() if values)]
    if kind not in kinds:
        message = f"there is no slice {show(name)}{suggest(kind, kinds) if kinds else ''}"
        how = "evaluation.slices.by adds features"
        if kind == SEEN:
            how = "data.checks.target_overlap and evaluation.slices.seen make those of references"
        yield Problem(path, f"{message}; {how}")
    elif found and kind in known and value not in known[kind]:
        titles = [f"{kind}={value}" for value in known[kind]]
        yield Problem(path, f"there is no slice {show(name)}{suggest(name, titles)}")
