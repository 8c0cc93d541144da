"""The checks of ``data.protect`` against the other sections."""

from collections.abc import Iterator
from typing import Any

from regard.components.data.re2_patterns import pattern_error
from regard.models.settings.base import KeyPath, Problem
from regard.pipeline.config.config import Config

_PATH: KeyPath = ("data", "protect")


def validate_protection(config: Config) -> Iterator[Problem]:
    """Yield what ``data.protect`` cannot work with, and patterns that find no spans."""
    protect = config.data.protect
    if protect is None:
        return
    if config.tokenizer.type == "word":
        message = "word makes a span and its punctuation one word; use bpe, unigram or char"
        yield Problem(("tokenizer", "type"), f"{message}, or remove data.protect")
    if getattr(config.model, "copies", False):
        message = "a copied token has no symbol in another row; use false, or remove data.protect"
        yield Problem(("model", "decoder", "pointer_generator"), message)
    yield from _links(config)
    rules = enumerate(protect.number_rules)
    paths: list[tuple[KeyPath, str]] = [
        *(((*_PATH, "patterns", i), pattern) for i, pattern in enumerate(protect.patterns)),
        *(((*_PATH, "number_rules", i, "pattern"), rule.pattern) for i, rule in rules),
    ]
    for path, pattern in paths:
        if problem := pattern_error(pattern):
            yield Problem(path, problem)


def _links(config: Config) -> Iterator[Problem]:
    """Check that links count the words that the model reads."""
    protect = config.data.protect
    sections: list[tuple[KeyPath, Any]] = [
        (("training", "guided_alignment"), config.training.guided_alignment),
        (("evaluation", "alignment"), config.evaluation.alignment),
    ]
    for path, links in sections:
        if links is None or protect is None:
            continue
        if protect.has_markup and not protect.by_attention:
            message = "tags would be words, which the links do not count; remove it, or use "
            yield Problem(path, f"{message}data.protect.placement: attention")
        elif links.unit == "character":
            message = "a span is one character for the model; use word, or remove data.protect"
            yield Problem((*path, "unit"), message)
