"""The whole configuration of one pipeline; sections ``model`` and ``search`` are its task's."""

from __future__ import annotations

import functools
import hashlib
import json
import typing
from typing import Annotated, Any, Literal

from pydantic import Field, create_model, model_validator

from components.corpus_gen.span_paths import places
from components.corpus_gen.spans import FEATURE as SPAN
from components.errors import UserError
from models import tasks
from models.settings.base import Section
from models.tasks.description import Description
from models.tasks.features import Feature
from pipeline.config.beam import Beam
from pipeline.config.data import Data, Files
from pipeline.config.errors import suggest
from pipeline.config.evaluation import Evaluation, Serving
from pipeline.config.kubeflow import Kubeflow
from pipeline.config.schedule import Schedule
from pipeline.config.tokenizer import Tokenizer
from pipeline.config.training import Training
from pipeline.config.tune import Tune

DEFAULT_TASK = "translation"


class Config(Section):
    """One pipeline: what is read, what is trained, how it is judged and where it goes."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=63)] = Field(
        description="Name of the pipeline, and of its model in the registry: a small letter, "
        "then small letters, digits and hyphens, 63 characters at most.",
        examples=["quickstart"],
    )
    task: str = Field(
        default=DEFAULT_TASK, description=f"What the model does: {', '.join(sorted(tasks.TASKS))}."
    )
    data: Data = Field(description="The files with the rows.")
    # These three are the task's own; see ``config_of``.
    tokenizer: Any = None
    model: Any = None
    training: Training = Field(
        default=Training(),
        description="How the model learns; the first of max_epochs, max_steps and max_minutes "
        "ends it.",
    )
    search: Any = None
    evaluation: Evaluation = Field(
        default=Evaluation(),
        description="What the test split is measured by, and what is good enough.",
    )
    serving: Serving = Field(
        default=Serving(), description="Where a good model goes, and what it must run on."
    )
    beam: Beam = Field(
        default=Beam(), description="Where the Beam jobs of the nodes run; the result is the same."
    )
    schedule: Schedule | None = Field(
        default=None,
        description="When `regard schedule` looks for something new, and what is reason enough for "
        "a run; null: only what its options say.",
    )
    kubeflow: Kubeflow | None = Field(
        default=None, description="Where and how the nodes run on a cluster; null: on none."
    )
    tune: Tune | None = Field(
        default=None, description="Which keys `regard tune` searches, and how; null: none."
    )

    @model_validator(mode="before")
    @classmethod
    def _own_defaults(cls, value: Any) -> Any:
        """Gives sections that are there in part the task's defaults for the rest."""
        if not isinstance(value, dict):
            return value
        filled = _compared_by_span(value)
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
        own = described.limited(self.model) if described.limited else described.features
        extra = (Feature(name, "text", "extra") for name in self.data.extra)
        return (*own, *extra)

    @property
    def stored_features(self) -> tuple[Feature, ...]:
        """What CorpusGen writes of a row for those who read on: ``features``, and its span."""
        span = (Feature(SPAN, "text", "extra"),) if self.data.has_spans else ()
        return (*self.features, *span)

    def section_json(self, name: str) -> str:
        """One section as canonical JSON: the same settings always give the same text."""
        content = self.model_dump(mode="json")[name]
        return json.dumps(content, sort_keys=True, ensure_ascii=False)

    def digest(self, *sections: str) -> str:
        """A short digest of the given sections, or of all of them."""
        names = sections or tuple(type(self).model_fields)
        text = json.dumps({name: self.section_json(name) for name in names}, sort_keys=True)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def _compared_by_span(given: dict[str, Any]) -> dict[str, Any]:
    """Has the model compared with production in each span of the test split apart.

    Where some of the newest span is tested on and nothing else is said: by all rows together, a
    model that learned bad data from a span may win by the rows of it that are as bad.
    """
    inside = functools.partial(_section, given)
    share = inside("data", "spans").get("test_share")
    production = inside("evaluation", "production")
    told = "slices" in production or ("production" in inside("evaluation") and not production)
    if not isinstance(share, int | float) or share <= 0 or told or not places(inside("data")):
        return dict(given)
    slices = inside("evaluation", "slices")
    by = slices.get("by") or ()
    if not isinstance(by, list | tuple):  # a mistake, which is told later
        return dict(given)
    evaluation = {
        **inside("evaluation"),
        "slices": {**slices, "by": [*by, *([] if SPAN in by else [SPAN])]},
        "production": {**production, "slices": [SPAN]},
    }
    return {**given, "evaluation": evaluation}


def _section(given: dict[str, Any], *path: str) -> dict[str, Any]:
    """A section within sections; empty where it is not there, or is none."""
    found: Any = given
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def known_task(name: str, where: str) -> str:
    """The name of a task, as it was given.

    Raises:
        UserError: there is none of that name.
    """
    if name not in tasks.TASKS:
        raise UserError(f"there is no task {name!r}{suggest(name, tasks.TASKS)}", where=where)
    return name


@functools.cache
def config_of(task: str) -> type[Config]:
    """The configuration of pipelines of one task.

    Raises:
        ValueError: there is no such task.
    """
    described = tasks.describe(task)
    fields: dict[str, Any] = dict.fromkeys(("tokenizer", "search"), (type(None), None))
    given = {"default": task} if task == DEFAULT_TASK else {"examples": [task]}
    fields["task"] = (Literal[task], _field("task", **given))
    if described.text_features:
        about = "How text becomes pieces: SentencePiece, trained on train."
        tokenizer = Tokenizer(**described.defaults.get("tokenizer", {}))
        fields["tokenizer"] = (Tokenizer, Field(default=tokenizer, description=about))
    files = Field(
        description=Data.model_fields["train"].description, examples=[described.example_files]
    )
    data = create_model("Data", __base__=Data, __doc__=Data.__doc__, train=(Files, files))
    fields["data"] = (data, _field("data"))
    network = Field(default=described.model(), description="The network.")
    fields["model"] = (described.model, network)
    training = Training.model_validate(described.defaults.get("training", {}))
    fields["training"] = (Training, _field("training", default=training))
    if described.search is not None:
        annotation, default = described.search
        about = "How the trained model looks for its answer."
        fields["search"] = (annotation, Field(default=default, description=about))
    evaluation = Evaluation.model_validate(
        {"metrics": described.metrics, **described.defaults.get("evaluation", {})}
    )
    fields["evaluation"] = (Evaluation, _field("evaluation", default=evaluation))
    return create_model("Config", __base__=Config, __doc__=Config.__doc__, **fields)


def _field(name: str, **given: Any) -> Any:
    """A field described as the one that it replaces."""
    return Field(description=Config.model_fields[name].description, **given)
