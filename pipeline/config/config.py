"""The whole configuration of one pipeline; sections ``model`` and ``search`` are its task's."""

from __future__ import annotations

import functools
import hashlib
import json
import typing
from typing import Annotated, Any, Literal

from pydantic import Field, create_model, model_validator

from regard.components.common.errors import UserError
from regard.components.data.sources import SPAN_FEATURE as SPAN
from regard.components.data.sources import Corpus
from regard.components.data.span_patterns import is_pattern
from regard.components.settings.data import SPLITS, DataConfig, Files
from regard.components.settings.evaluation import EvaluationConfig
from regard.components.settings.serving import ServingConfig
from regard.components.settings.tokenizer import TokenizerConfig
from regard.components.settings.tune import TuneConfig
from regard.models import tasks
from regard.models.settings.base import Section
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.description import Description, Feature
from regard.pipeline.config.beam import BeamConfig
from regard.pipeline.config.errors import suggest
from regard.pipeline.config.kubeflow import KubeflowConfig
from regard.pipeline.config.schedule import ScheduleConfig

DEFAULT_TASK = "translation"


class Config(Section):
    """The configuration of one pipeline."""

    name: Annotated[str, Field(pattern=r"^[a-z]([a-z0-9-]*[a-z0-9])?$", max_length=63)] = Field(
        description="Name of the pipeline, and of its model in the registry: small letters, "
        "digits and hyphens, starting with a letter, at most 63 characters.",
        examples=["quickstart"],
    )
    task: str = Field(
        default=DEFAULT_TASK, description=f"Task of the model: {', '.join(sorted(tasks.TASKS))}."
    )
    data: DataConfig = Field(description="Data files.")
    # These three are the task's own; see ``config_class``.
    tokenizer: Any = None
    model: Any = None
    training: TrainingConfig = Field(
        default=TrainingConfig(),
        description="How the model learns. Training stops at the first of max_epochs, max_steps "
        "and max_minutes.",
    )
    search: Any = None
    evaluation: EvaluationConfig = Field(
        default=EvaluationConfig(),
        description="Metrics of the test split, and what a model must reach to be published.",
    )
    serving: ServingConfig = Field(
        default=ServingConfig(),
        description="Where models are published, and what they must run on.",
    )
    beam: BeamConfig = Field(
        default=BeamConfig(),
        description="Where Beam jobs run; the result is the same everywhere.",
    )
    schedule: ScheduleConfig | None = Field(
        default=None,
        description="When `regard schedule` checks for new data, and which conditions start a run; "
        "null: its options decide.",
    )
    kubeflow: KubeflowConfig | None = Field(
        default=None,
        description="Where and how the nodes run on Kubeflow Pipelines; null: not on a cluster.",
    )
    tune: TuneConfig | None = Field(
        default=None, description="Which keys `regard tune` searches, and how; null: none."
    )

    @model_validator(mode="before")
    @classmethod
    def _own_defaults(cls, value: Any) -> Any:
        """Gives sections that are there in part the task's defaults for the rest."""
        if not isinstance(value, dict):
            return value
        filled = _compare_by_span(value)
        for name, defaults in cls._defaults().items():
            if isinstance(filled.get(name), dict):
                filled[name] = {**defaults, **filled[name]}
        return filled

    @classmethod
    def _defaults(cls) -> dict[str, dict[str, Any]]:
        """The task's own defaults of sections that all tasks have."""
        described = tasks.describe(typing.get_args(cls.model_fields["task"].annotation)[0])
        own = {name: dict(values) for name, values in described.defaults.items()}
        return {**own, "evaluation": {"metrics": described.metrics, **own.get("evaluation", {})}}

    @property
    def description(self) -> Description:
        """What the task says of itself."""
        return tasks.describe(self.task)

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features of a raw row, as ``model`` limits them, and ``data.extra``."""
        described = self.description
        own = (
            described.limit_features(self.model) if described.limit_features else described.features
        )
        extra = (Feature(name, "text", "extra") for name in self.data.extra)
        return (*own, *extra)

    @property
    def corpus(self) -> Corpus:
        """The section ``data`` with the features of a row."""
        return Corpus(self.data, self.features)

    @property
    def stored_features(self) -> tuple[Feature, ...]:
        """What CorpusGen writes of a row for those who read on: ``features``, and its span."""
        span = (Feature(SPAN, "text", "extra"),) if self.data.has_spans else ()
        return (*self.features, *span)

    def section_json(self, name: str) -> str:
        """Return a section or value as canonical JSON; ``null`` for a section without settings."""
        content = getattr(self, name)
        return content.to_json() if isinstance(content, Section) else json.dumps(content)

    def digest(self, *sections: str) -> str:
        """A short digest of the given sections, or of all of them."""
        names = sections or tuple(type(self).model_fields)
        text = json.dumps({name: self.section_json(name) for name in names}, sort_keys=True)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def _compare_by_span(values: dict[str, Any]) -> dict[str, Any]:
    """Compare with production per span if part of the newest span is tested, by default.

    On all rows together, a model that learned bad data from a span can win by that span's rows.
    """
    inside = functools.partial(_section, values)
    share = inside("data", "spans").get("test_share")
    production = inside("evaluation", "production")
    is_explicit = "slices" in production or (
        "production" in inside("evaluation") and not production
    )
    if (
        not isinstance(share, int | float)
        or share <= 0
        or is_explicit
        or not _has_pattern([inside("data").get(split) for split in SPLITS])
    ):
        return dict(values)
    slices = inside("evaluation", "slices")
    by = slices.get("by") or ()
    if not isinstance(by, list | tuple):  # an error that validation reports
        return dict(values)
    evaluation = {
        **inside("evaluation"),
        "slices": {**slices, "by": [*by, *([] if SPAN in by else [SPAN])]},
        "production": {**production, "slices": [SPAN]},
    }
    return {**values, "evaluation": evaluation}


def _has_pattern(value: Any) -> bool:
    """Return whether a value, such as a section that is not validated yet, holds a placeholder."""
    if isinstance(value, dict | list):
        return any(map(_has_pattern, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and is_pattern(value)


def _section(values: dict[str, Any], *path: str) -> dict[str, Any]:
    """Return a nested section; empty if it is missing or not a mapping."""
    section: Any = values
    for name in path:
        section = section.get(name) if isinstance(section, dict) else None
    return section if isinstance(section, dict) else {}


def require_task(name: str, where: str) -> str:
    """The name of a task, as it was given.

    Raises:
        UserError: there is none of that name.
    """
    if name not in tasks.TASKS:
        raise UserError(f"there is no task {name!r}{suggest(name, tasks.TASKS)}", where=where)
    return name


@functools.cache
def config_class(task: str) -> type[Config]:
    """The configuration of pipelines of one task.

    Raises:
        ValueError: there is no such task.
    """
    described = tasks.describe(task)
    fields: dict[str, Any] = dict.fromkeys(("tokenizer", "search"), (type(None), None))
    task_options = {"default": task} if task == DEFAULT_TASK else {"examples": [task]}
    fields["task"] = (Literal[task], _field("task", **task_options))
    if described.text_features:
        about = "SentencePiece tokenizers, trained on the train split."
        tokenizer = TokenizerConfig(**described.defaults.get("tokenizer", {}))
        fields["tokenizer"] = (TokenizerConfig, Field(default=tokenizer, description=about))
    files = Field(
        description=DataConfig.model_fields["train"].description, examples=[described.example_files]
    )
    data = create_model(
        "Data", __base__=DataConfig, __doc__=DataConfig.__doc__, train=(Files, files)
    )
    fields["data"] = (data, _field("data"))
    network = Field(default=described.model(), description="Network.")
    fields["model"] = (described.model, network)
    training = TrainingConfig.model_validate(described.defaults.get("training", {}))
    fields["training"] = (TrainingConfig, _field("training", default=training))
    if described.search is not None:
        annotation, default = described.search
        about = "How the trained model decodes."
        fields["search"] = (annotation, Field(default=default, description=about))
    evaluation = EvaluationConfig.model_validate(
        {"metrics": described.metrics, **described.defaults.get("evaluation", {})}
    )
    fields["evaluation"] = (EvaluationConfig, _field("evaluation", default=evaluation))
    return create_model("Config", __base__=Config, __doc__=Config.__doc__, **fields)


def _field(name: str, **options: Any) -> Any:
    """Return a field with the description of the field that it replaces."""
    return Field(description=Config.model_fields[name].description, **options)
