"""Keys that do not apply to every task: they are refused, and the reference leaves them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from regard.components.settings.task_sections import section_defaults
from regard.core.text_noise import noisy_features
from regard.models import tasks
from regard.models.metrics import supports
from regard.models.settings.base import KeyPath, Problem, Section
from regard.models.tasks.description import Description
from regard.pipeline.config.config import Config


@dataclass(frozen=True)
class TaskKey:
    """A key of sections that all tasks have.

    Attributes:
        path: the key.
        applies: whether it has an effect on a task.
        reason: why it does not, as the end of a sentence about a task; empty if that is plain.
    """

    path: tuple[str, ...]
    applies: Callable[[Description], bool]
    reason: str = ""

    def message(self, task: str) -> str:
        """Return the message for a task that the key does not apply to."""
        reason = f", {self.reason}" if self.reason else ""
        return f"does not apply to the task {task}{reason}; remove it"


def _writes_texts(task: Description) -> bool:
    return task.output_kind.is_text and task.search is not None


def _is_text_to_text(task: Description) -> bool:
    are_texts = all(feature.kind.is_text for feature in task.features if feature.role != "extra")
    return are_texts and task.search is not None


def _has_one_target(task: Description) -> bool:
    return _is_text_to_text(task) and not task.reference.multiple


def _reads_text(task: Description) -> bool:
    return any(feature.role == "input" and feature.kind.is_text for feature in task.features)


def _reads_files(task: Description) -> bool:
    return any(feature.kind.names_file for feature in task.features)


def _preprocesses(name: str) -> Callable[[Description], bool]:
    return lambda task: name in task.preprocessing_section.model_fields


_PAIRS = "only to pairs of texts"
_ONE_TARGET = "which may have several targets per row"
# A section is before its keys.
TASK_KEYS = (
    TaskKey(("data", "images"), _reads_files, "which reads no images"),
    TaskKey(("data", "tags"), _preprocesses("tag_feature"), _PAIRS),
    TaskKey(("data", "protect"), _preprocesses("protect"), _PAIRS),
    TaskKey(("data", "monolingual"), _has_one_target, _PAIRS),
    TaskKey(("augmentation",), _is_text_to_text, _PAIRS),
    TaskKey(("augmentation", "filter"), _has_one_target, _ONE_TARGET),
    TaskKey(("augmentation", "back_translation"), _has_one_target, _ONE_TARGET),
    TaskKey(("training", "label_smoothing"), _writes_texts),
    TaskKey(("training", "penalties"), _writes_texts),
    TaskKey(("training", "reinforce"), _writes_texts),
    TaskKey(("training", "scheduled_sampling"), _writes_texts),
    TaskKey(
        ("training", "guided_alignment"),
        lambda task: _preprocesses("guided_alignment")(task) and not task.reference.multiple,
        _PAIRS,
    ),
    TaskKey(("training", "subword_sampling"), _writes_texts, "whose outputs are not texts"),
    TaskKey(
        ("training", "noise"),
        lambda task: bool(noisy_features(task.features)),
        "which reads no text",
    ),
    TaskKey(
        ("training", "noise"),
        _writes_texts,
        "whose rows have tokens of single words: measure with evaluation.robustness",
    ),
    TaskKey(("training", "ensemble"), _is_text_to_text, "only from texts to texts"),
    TaskKey(
        ("evaluation", "alignment"),
        lambda task: supports("aer", task.output_kind),
        "which has no word alignments",
    ),
    TaskKey(
        ("evaluation", "robustness"),
        lambda task: bool(noisy_features(task.features)),
        "which reads no text",
    ),
    TaskKey(
        ("evaluation", "checks"),
        lambda task: task.reference.kind.is_text,
        "whose outputs are not texts",
    ),
    TaskKey(("evaluation", "checks", "copies"), _reads_text, "which reads no text"),
    TaskKey(
        ("serving", "split_sentences"),
        lambda task: task.has_independent_sentences,
        "which needs the whole input",
    ),
    TaskKey(("serving", "confidence"), _writes_texts, "which writes no texts with a score"),
)


@cache
def inapplicable_keys(task: str) -> dict[tuple[str, ...], str]:
    """Return the keys that have no effect on a task, with a message for each.

    Without the keys of a section that has no effect.
    """
    description = tasks.describe(task)
    messages = {
        tuple(key.split(".")): f"{reason}; remove it"
        for key, reason in description.unused_keys.items()
    }
    for key in TASK_KEYS:
        sections = [key.path[:length] for length in range(1, len(key.path) + 1)]
        if not key.applies(description) and not messages.keys() & sections:
            messages[key.path] = key.message(task)
    return messages


def find_inapplicable(config: Config) -> Iterator[Problem]:
    """Yield the keys of a configuration that have no effect on its task."""
    for path, message in inapplicable_keys(config.task).items():
        section = _parent(config, path)
        is_key = isinstance(section, Section) and path[-1] in type(section).model_fields
        if is_key and getattr(section, path[-1]) != _default(config, path):
            yield Problem(path, message)


def with_defaults(config: Config, paths: Iterable[KeyPath]) -> Config:
    """Return a configuration with the defaults of some keys."""
    for path in paths:
        value: Any = _default(config, path)
        for length in range(len(path), 0, -1):
            value = _parent(config, path[:length]).model_copy(update={str(path[length - 1]): value})
        config = value
    return config


def _parent(config: Config, path: KeyPath) -> Any:
    """Return the section that a key is in; None: the configuration has none."""
    section: Any = config
    for name in path[:-1]:
        section = getattr(section, str(name), None)
    return section


def _default(config: Config, path: KeyPath) -> Any:
    """Return the default of a key, which may be one of the task."""
    defaults = section_defaults(config.description)
    if len(path) == 2 and path[1] in defaults.get(str(path[0]), {}):
        return defaults[str(path[0])][str(path[1])]
    fields = type(_parent(config, path)).model_fields
    return fields[str(path[-1])].get_default(call_default_factory=True)
