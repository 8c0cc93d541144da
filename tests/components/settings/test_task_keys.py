"""Keys that have no effect on a task are refused, and neither reference nor schema has them."""

import functools
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from regard.components.settings import task_keys
from regard.components.settings.augmentation import AugmentationConfig
from regard.components.settings.data_checks import row_check_names
from regard.components.settings.evaluation import EvaluationConfig
from regard.components.settings.task_keys import (
    TASK_KEYS,
    default_of,
    find_inapplicable,
    inapplicable_keys,
    with_default,
)
from regard.core.yaml_text import to_yaml
from regard.models.settings.annotations import models_in
from regard.models.settings.training import TrainingConfig
from regard.models.tasks import TASKS
from regard.pipeline.config.config import config_class
from regard.pipeline.config.reference import config_reference, json_schema
from tests.pipeline.config.refusals import load_text, problems_of

# A value of each key that is not its default.
VALUES: dict[str, Any] = {
    "data.images": ".",
    "data.tags": {"names": ["de"], "column": "tag"},
    "data.protect": {},
    "data.monolingual": ["b.txt"],
    "augmentation": {"distillation": {"teacher": "deep@3"}},
    "augmentation.filter": {"forward": "deep@3", "reverse": "back@1"},
    "augmentation.back_translation": {"model": "reverse@1"},
    "training.label_smoothing": 0.1,
    "training.penalties": {"coverage": 1.0},
    "training.reinforce": {"reward_weight": 2.0},
    "training.scheduled_sampling": {},
    "training.guided_alignment": {"links": "links"},
    "training.subword_sampling": {"alpha": 0.2},
    "training.noise": {"spaces": 0.1},
    "training.ensemble": ["a@1"],
    "search.max_source_length": 3,
    "search.long_source": "refuse",
    "search.max_length_factor": 1.5,
    "search.max_length_offset": 3,
    "search.min_length_factor": 0.5,
    "search.no_repeat_ngram_size": 3,
    "search.coverage_penalty": 0.2,
    "evaluation.alignment": {"gold": "links"},
    "evaluation.robustness": {},
    "evaluation.checks": {"empty": {"action": "warn"}},
    "evaluation.checks.copies": {"action": "warn"},
    "serving.split_sentences": True,
    "serving.confidence": {},
}
VALUES |= {f"data.checks.{name}": {"limit": 0.3} for name in row_check_names()}
VALUES["data.checks.language"] = {"languages": {"source": "en"}}
CASES = [(task, ".".join(path)) for task in TASKS for path in inapplicable_keys(task)]


def nested(key: str, value: Any) -> dict[str, Any]:
    """Return mappings in which a key has a value."""
    for name in reversed(key.split(".")):
        value = {name: value}
    return value


def configuration(task: str, key: str) -> dict[str, Any]:
    """Return a configuration of a task with a key that is not at its default."""
    images = {"images": "."} if task == "captioning" else {}
    content: dict[str, Any] = {"name": "x", "task": task, "data": {"train": "a.jsonl", **images}}
    for name, section in nested(key, VALUES[key]).items():
        content[name] = {**content.get(name, {}), **section}
    return content


@functools.cache
def schema_validator(task: str) -> Draft202012Validator:
    return Draft202012Validator(json_schema(task))


def schema_errors(task: str, content: dict[str, Any]) -> list[str]:
    """Return the keys that the JSON schema of a task refuses."""
    errors = schema_validator(task).iter_errors(content)
    return [".".join(map(str, error.absolute_path)) for error in errors]


@pytest.mark.parametrize(("task", "key"), CASES)
def test_a_key_without_effect(task: str, key: str, tmp_path: Path) -> None:
    content = configuration(task, key)
    problems = [line.partition(": ")[2] for line in problems_of(tmp_path, to_yaml(content))]
    assert any(line.startswith(f"{key}: ") for line in problems), problems
    assert schema_errors(task, content) != []


@pytest.mark.parametrize("key", [".".join(key.path) for key in TASK_KEYS])
def test_a_key_with_an_effect_on_another_task(key: str) -> None:
    path = tuple(key.split("."))
    paths = [path[:length] for length in range(1, len(path) + 1)]
    tasks = [task for task in TASKS if not inapplicable_keys(task).keys() & paths]
    assert tasks
    for task in tasks:
        assert schema_errors(task, configuration(task, key)) == [], task


def keys_of(reference: str) -> set[tuple[str, ...]]:
    """Return the keys of a reference as paths, with those of variants in comments."""
    paths, parents = set(), []
    for line in reference.splitlines():
        text = line.replace("#   ", "    ", 1) if "#   " in line else line
        if match := re.match(r"( *)(\w+):", text):
            depth = len(match[1])
            parents = [(other, name) for other, name in parents if other < depth]
            parents.append((depth, match[2]))
            paths.add(tuple(name for _, name in parents))
    return paths


@pytest.mark.parametrize("task", TASKS)
def test_the_reference_leaves_them_out(task: str) -> None:
    keys = keys_of(config_reference(task))
    assert ("training", "max_epochs") in keys
    assert keys.isdisjoint(inapplicable_keys(task))


@pytest.mark.parametrize("task", TASKS)
def test_their_defaults_are_accepted(task: str, tmp_path: Path) -> None:
    """A recorded configuration has all keys."""
    images = ", images: ." if task == "captioning" else ""
    text = f"name: x\ntask: {task}\ndata: {{train: a.jsonl{images}}}\n"
    config = load_text(tmp_path, text)
    recorded = config.model_dump(mode="json", exclude_none=True)
    assert load_text(tmp_path, to_yaml(recorded)) == config


def test_other_keys_stay_when_one_gets_its_default(tmp_path: Path) -> None:
    text = "name: x\ndata: {train: a.tsv}\ntraining: {label_smoothing: 0.3, max_epochs: 3}\n"
    text += "augmentation: {filter: {forward: a@1, reverse: b@1}}\n"
    text += "evaluation: {checks: {copies: {limit: 0.2}}}\n"
    config = load_text(tmp_path, text)
    training = with_default("translation", config.training, ("training", "label_smoothing"))
    assert training == config.training.model_copy(update={"label_smoothing": 0.1})
    path = ("evaluation", "checks", "copies")
    evaluation = with_default("translation", config.evaluation, path)
    assert evaluation == load_text(tmp_path, "name: x\ndata: {train: a.tsv}\n").evaluation
    assert with_default("translation", config.augmentation, ("augmentation",)) is None
    path = ("augmentation", "filter")
    assert with_default("translation", config.augmentation, path) == AugmentationConfig()
    assert config.training.label_smoothing == 0.3


def test_defaults_of_a_task_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A description has plain lists and mappings."""
    defaults = {
        "training": {"ensemble": []},
        "evaluation": {"metrics": ["pearson"], "checks": {"copies": {"limit": 0.2}}},
    }
    monkeypatch.setattr(task_keys, "section_defaults", lambda description: defaults)
    sections = {
        "training": TrainingConfig(),
        "evaluation": EvaluationConfig.model_validate(defaults["evaluation"]),
    }
    path = ("evaluation", "checks", "copies")
    assert default_of("similarity", sections["evaluation"], path).limit == 0.2
    assert list(find_inapplicable("similarity", sections)) == []


def test_sections_that_are_missing_have_no_problems() -> None:
    sections = {"training": TrainingConfig(label_smoothing=0.2)}
    (problem,) = find_inapplicable("span", sections)
    assert problem.path == ("training", "label_smoothing")


@pytest.mark.parametrize("task", TASKS)
def test_they_are_keys(task: str) -> None:
    """A key that is renamed may not be forgotten."""
    for path in inapplicable_keys(task):
        sections: list[Any] = [config_class(task)]
        for name in path:
            fields = [part.model_fields[name] for part in sections if name in part.model_fields]
            assert fields, path
            sections = [part for field in fields for part in models_in(field.annotation)]
