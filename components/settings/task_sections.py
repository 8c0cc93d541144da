"""The sections of a task: their types, and the defaults that the task gives them."""

from typing import Any

from pydantic import JsonValue

from regard.components.settings.evaluation import EvaluationConfig
from regard.components.settings.tokenizer import TokenizerConfig
from regard.models.settings.base import Section
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.description import Description


def section_defaults(task: Description) -> dict[str, dict[str, JsonValue]]:
    """Return the task's own defaults of sections that all tasks have."""
    sections = {name: dict(values) for name, values in task.defaults.items()}
    sections["evaluation"] = {"metrics": task.metrics, **sections.get("evaluation", {})}
    return sections


def task_sections(task: Description) -> dict[str, tuple[Any, Section]]:
    """Return the type and the default of each section that depends on the task.

    A task without texts has no section ``tokenizer``, and one without a search no ``search``.
    """
    defaults = section_defaults(task)
    sections: dict[str, tuple[Any, Section]] = {"model": (task.model, task.model())}
    kinds: dict[str, type[Section]] = {"training": TrainingConfig, "evaluation": EvaluationConfig}
    kinds |= {"tokenizer": TokenizerConfig} if task.text_features else {}
    for name, kind in kinds.items():
        sections[name] = (kind, kind.model_validate(defaults.get(name, {})))
    if task.search is not None:
        sections["search"] = task.search
    return sections
