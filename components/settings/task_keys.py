"""Keys that do not apply to every task: they are refused, and the reference leaves them out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from regard.components.settings.data_checks import row_check_names
from regard.components.settings.task_sections import section_defaults
from regard.core.text_noise import noisy_features
from regard.models import tasks
from regard.models.metrics import supports
from regard.models.settings.base import KeyPath, Problem, Section
from regard.models.tasks.description import Description


@dataclass(frozen=True)
class TaskKey:
    """A key of sections that all tasks have.

    Attributes:
        path: the key.
        applies: whether it has an effect on a task.
        reason: why it does not, as the end of a sentence about a task; empty if that is plain.
        remedy: what to do where it does not.
    """

    path: tuple[str, ...]
    applies: Callable[[Description], bool]
    reason: str = ""
    remedy: str = "remove it"

    def message(self, task: str) -> str:
        """Return the message for a task that the key does not apply to."""
        reason = f", {self.reason}" if self.reason else ""
        return f"does not apply to the task {task}{reason}; {self.remedy}"


def _writes_texts(task: Description) -> bool:
    return task.output_kind.is_text and task.search is not None


def _is_text_to_text(task: Description) -> bool:
    are_texts = all(feature.kind.is_text for feature in task.features if feature.role != "extra")
    return are_texts and task.search is not None


def _has_one_target(task: Description) -> bool:
    return not task.reference.multiple


def _has_texts(task: Description) -> bool:
    return bool(task.text_features)


def _reads_text(task: Description) -> bool:
    return any(feature.role == "input" and feature.kind.is_text for feature in task.features)


def _reads_separate_text(task: Description) -> bool:
    return bool(noisy_features(task.features))


def _reads_files(task: Description) -> bool:
    return any(feature.kind.names_file for feature in task.features)


def _aligns_words(task: Description) -> bool:
    return _is_text_to_text(task) and supports("aer", task.output_kind)


def _preprocesses(name: str) -> Callable[[Description], bool]:
    return lambda task: name in task.preprocessing_section.model_fields


_PAIRS = "only to tasks with pairs of texts"
_TARGETS = "whose rows may have several targets"
# A section is before its keys, and of several reasons the first one is the message.
TASK_KEYS = (
    TaskKey(("data", "images"), _reads_files, "which reads no images"),
    TaskKey(("data", "tags"), _preprocesses("tag_feature"), _PAIRS),
    TaskKey(("data", "protect"), _preprocesses("protect"), _PAIRS),
    TaskKey(("data", "monolingual"), _is_text_to_text, _PAIRS),
    TaskKey(("data", "monolingual"), _has_one_target, _TARGETS),
    *(
        TaskKey(("data", "checks", name), _has_texts, "which has no texts")
        for name in row_check_names()
    ),
    TaskKey(("augmentation",), _is_text_to_text, _PAIRS),
    TaskKey(("augmentation", "filter"), _has_one_target, _TARGETS),
    TaskKey(("augmentation", "back_translation"), _has_one_target, _TARGETS),
    TaskKey(("training", "label_smoothing"), _writes_texts),
    TaskKey(("training", "penalties"), _writes_texts),
    TaskKey(("training", "reinforce"), _writes_texts),
    TaskKey(("training", "scheduled_sampling"), _writes_texts),
    TaskKey(("training", "guided_alignment"), _preprocesses("guided_alignment"), _PAIRS),
    TaskKey(("training", "guided_alignment"), _has_one_target, _TARGETS),
    TaskKey(("training", "subword_sampling"), _writes_texts, "which generates no texts"),
    TaskKey(("training", "noise"), _reads_separate_text, "which reads no text"),
    TaskKey(
        ("training", "noise"),
        _writes_texts,
        "whose rows have tokens of single words",
        remedy="remove it, or measure with evaluation.robustness",
    ),
    TaskKey(("training", "ensemble"), _is_text_to_text, _PAIRS),
    TaskKey(("evaluation", "alignment"), _aligns_words, _PAIRS),
    TaskKey(("evaluation", "robustness"), _reads_separate_text, "which reads no text"),
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
    unused = [
        TaskKey(tuple(key.split(".")), lambda task: False, reason)
        for key, reason in description.unused_keys.items()
    ]
    messages: dict[tuple[str, ...], str] = {}
    for key in (*unused, *TASK_KEYS):
        sections = [key.path[:length] for length in range(1, len(key.path) + 1)]
        if not key.applies(description) and not messages.keys() & sections:
            messages[key.path] = key.message(task)
    return messages


def find_inapplicable(task: str, sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the keys that have no effect on a task, but another value than their default.

    Args:
        task: the name of the task.
        sections: the sections of a configuration, not necessarily all.
    """
    for path, message in inapplicable_keys(task).items():
        value: Any = sections.get(path[0])
        for name in path[1:]:
            value = getattr(value, name, None)
        if value is not None and value != default_of(task, sections[path[0]], path):
            yield Problem(path, message)


def default_of(task: str, section: Any, path: KeyPath) -> Any:
    """Return the default of a key, which may be one of the task.

    Args:
        task: the name of the task.
        section: the section of the configuration that the key is in, at any depth.
        path: the key.
    """
    names = [str(name) for name in path]
    if len(names) == 1:
        return None  # the section is optional
    defaults = section_defaults(tasks.describe(task))
    if names[0] in defaults:
        value: Any = type(section).model_validate(defaults[names[0]])
    else:
        value = type(section).model_fields[names[1]].get_default(call_default_factory=True)
        names = names[1:]
    for name in names[1:]:
        value = getattr(value, name)
    return value


def with_default(task: str, section: Any, path: KeyPath) -> Section | None:
    """Return a section in which a key has its default; None: the section itself is the key.

    Args:
        task: the name of the task.
        section: the section of the configuration that the key is in, at any depth.
        path: the key.
    """
    names = [str(name) for name in path[1:]]
    parts = [section]
    for name in names[:-1]:
        parts.append(getattr(parts[-1], name))
    value: Any = default_of(task, section, path)
    for name in reversed(names):
        value = parts.pop().model_copy(update={name: value})
    result: Section | None = value
    return result
