"""Validates the slices of the section ``evaluation``."""

from __future__ import annotations

from collections.abc import Iterator

from regard.components.evaluator.slices import (
    LENGTH,
    OOV,
    OVERLAP_NAMES,
    PATTERN,
    TARGET_OVERLAP,
    length_names,
    share_names,
)
from regard.models.settings.base import Path, Problem
from regard.pipeline.config.config import Config
from regard.pipeline.config.errors import show, suggest, unknown

_KEY: Path = ("evaluation", "slices")


def validate_slices(config: Config) -> Iterator[Problem]:
    """Yield the problems of ``evaluation.slices`` and of all references to slices."""
    evaluation, slices = config.evaluation, config.evaluation.slices
    yield from _validate_features(config)
    if slices.oov is not None and (not slices.oov or list(slices.oov) != sorted(set(slices.oov))):
        yield Problem((*_KEY, "oov"), "must be a list of increasing bounds, or null")
    references: list[tuple[Path, str]]
    references = [((*_KEY, "thresholds", name), name) for name in slices.thresholds]
    if evaluation.production is not None:
        path: Path = ("evaluation", "production", "slices")
        references += [((*path, i), name) for i, name in enumerate(evaluation.production.slices)]
    names = _slice_names(config)
    for path, name in references:
        if message := _name_error(name, names):
            yield Problem(path, message)


def _validate_features(config: Config) -> Iterator[Problem]:
    """Slices need text features with one value per row."""
    slices = config.evaluation.slices
    texts = [f.name for f in config.stored_features if f.kind == "text" and not f.multiple]
    references: list[tuple[Path, str]] = []
    for index, name in enumerate(slices.by):
        path = (*_KEY, "by", index)
        references.append((path, name))
        if name in slices.by[:index]:
            yield Problem(path, f"{show(name)} is given twice")
        if name in (LENGTH, OOV, PATTERN, TARGET_OVERLAP):
            yield Problem(path, f"{name} is a built-in kind of slices; rename the column")
    for name, pattern in slices.patterns.items():
        references.append(((*_KEY, "patterns", name, "feature"), pattern.feature))
    for path, name in references:
        if name not in texts:
            message = f"{unknown(name, texts, 'a text feature')}; data.extra can add columns"
            yield Problem(path, message)


def _slice_names(config: Config) -> dict[str, list[str]]:
    """Return the names of slices by kind; empty for features, whose values are not known yet."""
    slices, checks = config.evaluation.slices, config.data.checks
    text_roles = {feature.role for feature in config.stored_features if feature.kind == "text"}
    names: dict[str, list[str]] = {name: [] for name in slices.by}
    if slices.patterns:
        names[PATTERN] = list(slices.patterns)
    if config.description.has_input_length:
        names[LENGTH] = length_names(config.evaluation.length_buckets)
    if slices.oov and "input" in text_roles:
        names[OOV] = share_names(slices.oov)
    if slices.target_overlap and checks.target_overlap and "reference" in text_roles:
        names[TARGET_OVERLAP] = list(OVERLAP_NAMES)
    return names


def _name_error(name: str, names: dict[str, list[str]]) -> str:
    """Return why no slice can have a name, or the empty string."""
    kind, separator, _ = name.partition("=")
    titles = [f"{kind}={value}" for value in names.get(kind, [])]
    if kind not in names:
        remedy = "evaluation.slices.by adds features"
        if kind == TARGET_OVERLAP:
            remedy = "it needs data.checks.target_overlap and evaluation.slices.target_overlap"
        return f"there is no slice {show(name)}. {suggest(name, names)}; {remedy}"
    if separator and titles and name not in titles:
        return f"there is no slice {show(name)}. {suggest(name, titles)}"
    return ""
