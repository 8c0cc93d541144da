"""The whole configuration of one pipeline; sections ``model`` and ``search`` are its task's."""

import dataclasses
import functools
import hashlib
import json
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, PrivateAttr, create_model, model_validator
from typing_extensions import Self

from regard.components.common.references import References, restore_references
from regard.components.data.sources import SPAN_FEATURE as SPAN
from regard.components.data.sources import Corpus, extra_features
from regard.components.settings.augmentation import AugmentationConfig
from regard.components.settings.data import DataConfig
from regard.components.settings.data_section import data_class
from regard.components.settings.evaluation import EvaluationConfig
from regard.components.settings.serving import ServingConfig
from regard.components.settings.task_sections import section_defaults, task_sections
from regard.components.settings.tokenizer import TokenizerConfig
from regard.components.settings.tune import TuneConfig
from regard.core.errors import UserError
from regard.core.features import Feature
from regard.core.kinds import TEXT
from regard.core.modules import module_of
from regard.models import tasks
from regard.models.settings.base import KeyPath, Section
from regard.models.settings.training import TrainingConfig
from regard.models.settings.validation_errors import unknown
from regard.models.tasks.description import Description
from regard.pipeline.config.beam import BeamConfig
from regard.pipeline.config.changes import OPTION
from regard.pipeline.config.kubeflow import KubeflowConfig
from regard.pipeline.config.located import LocatedMapping
from regard.pipeline.config.metadata import MetadataConfig
from regard.pipeline.config.own_nodes import PipelineConfig
from regard.pipeline.config.schedule import ScheduleConfig
from regard.pipeline.config.tracking import TrackingConfig

DEFAULT_TASK = "translation"
NAME_PATTERN = r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$"
# The nodes of a pipeline, in the order in which they run.
NODES: tuple[str, ...] = (
    *("CorpusGen", "StatisticsGen", "SchemaGen", "ExampleValidator", "TokenizerTrainer"),
    *("Preprocess", "Trainer", "Predictor", "Evaluator", "ServingCheck", "Pusher", "Reporter"),
)
AUGMENTER = "Augmenter"
TUNER = "Tuner"
# With the node of the section ``augmentation``.
ALL_NODES = (*NODES[:4], AUGMENTER, *NODES[4:])


@dataclasses.dataclass(frozen=True)
class ConfigOrigin:
    """Where a configuration was written. Configurations with equal values are equal.

    Attributes:
        mapping: What was written; empty for a configuration that was not loaded.
        change: Returns the configuration with other values.
    """

    mapping: LocatedMapping = dataclasses.field(
        default_factory=lambda: LocatedMapping({}, ()), compare=False
    )
    change: Callable[[Mapping[str, Any]], Any] | None = dataclasses.field(
        default=None, compare=False
    )

    @property
    def file(self) -> str:
        """The YAML file as the user named it; empty for a mapping."""
        return self.mapping.sources[0].file if self.mapping.sources else ""

    @property
    def assignments(self) -> list[str]:
        """The values of ``--set`` and `Config.with_values` as ``KEY=VALUE``."""
        return [source.assignment for source in self.mapping.sources if source.assignment]

    @property
    def arguments(self) -> list[str]:
        """The arguments of a command that loads the same configuration; none for a mapping."""
        options = [text for assignment in self.assignments for text in (OPTION, assignment)]
        return [self.file, *options] if self.file else []


class Config(Section):
    """The configuration of one pipeline.

    Attributes:
        name: Name of the pipeline, and of its model in the registry: small letters, digits and
            hyphens, starting with a letter, at most 63 characters.
        data: Data files.
        augmentation: How published models change the train split: filtering, distillation and
            back-translation; null: not at all.
        tokenizer: SentencePiece tokenizers, trained on the train split.
        model: Network.
        training: How the model learns. Training stops at the first of max_epochs, max_steps and
            max_minutes.
        search: How the trained model decodes.
        evaluation: Metrics of the test split, and what a model must reach to be published.
        serving: Where models are published, and what they must run on.
        beam: Where Beam jobs run; the result is the same everywhere.
        schedule: When `regard schedule` checks for new data, and which conditions start a run;
            null: every change starts one.
        pipeline: Nodes of your own in the graph.
        kubeflow: Where and how the nodes run on Kubeflow Pipelines; null: not on a cluster.
        tune: Which keys `regard tune` searches, and how; null: none.
        tracking: Experiment trackers that record finished runs.
        metadata: Database of ML Metadata, which several pipelines may share.
    """

    name: Annotated[str, Field(pattern=NAME_PATTERN, examples=["quickstart"])]
    task: str = Field(
        default=DEFAULT_TASK,
        description=f"Task of the model: {', '.join(sorted(tasks.TASKS.own))}.",
    )
    data: DataConfig
    augmentation: AugmentationConfig | None = None
    # The task defines tokenizer, model and search; see ``config_class``.
    tokenizer: Any = None
    model: Any = None
    training: TrainingConfig = TrainingConfig()
    search: Any = None
    evaluation: EvaluationConfig = EvaluationConfig()
    serving: ServingConfig = ServingConfig()
    beam: BeamConfig = BeamConfig()
    schedule: ScheduleConfig | None = None
    pipeline: PipelineConfig = PipelineConfig()
    kubeflow: KubeflowConfig | None = None
    tune: TuneConfig | None = None
    tracking: TrackingConfig = TrackingConfig()
    metadata: MetadataConfig = MetadataConfig()

    _references: References = PrivateAttr(default_factory=dict)
    _origin: ConfigOrigin = PrivateAttr(default_factory=ConfigOrigin)

    @model_validator(mode="before")
    @classmethod
    def _fill_in_task_defaults(cls, value: Any) -> Any:
        """Give the missing keys of a section the defaults of the task."""
        if not isinstance(value, dict):
            return value
        (task,) = typing.get_args(cls.model_fields["task"].annotation)
        defaults = section_defaults(tasks.describe(task))
        filled = dict(value)
        for name, keys in defaults.items():
            if isinstance(value.get(name), dict):
                filled[name] = {**keys, **value[name]}
        return filled

    @model_validator(mode="after")
    def _compare_newest_span(self) -> Self:
        """Compare with production per span if part of the newest span is tested, by default.

        On all rows together, a model that learned bad data from a span can win by that span's rows.
        """
        production = self.evaluation.production
        slices = self.evaluation.slices
        is_tested = self.data.has_spans and self.data.spans.test_share > 0
        if production is None or "slices" in production.model_fields_set or not is_tested:
            return self
        by = slices.by if SPAN in slices.by else (*slices.by, SPAN)
        update = {
            "slices": slices.model_copy(update={"by": by}),
            "production": production.model_copy(update={"slices": (SPAN,)}),
        }
        return self.model_copy(update={"evaluation": self.evaluation.model_copy(update=update)})

    @property
    def description(self) -> Description:
        """The description of the task."""
        return tasks.describe(self.task)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of all nodes, in the order in which they run, except ``pipeline.extra``'s."""
        return self.pipeline.execution_order(self.regard_nodes)

    @property
    def regard_nodes(self) -> tuple[str, ...]:
        """The names of Regard's nodes; a task without text features has no tokenizer."""
        uses = {"TokenizerTrainer": self.description.text_features, AUGMENTER: self.augmentation}
        return tuple(name for name in ALL_NODES if uses.get(name, True))

    @property
    def search_nodes(self) -> tuple[str, ...]:
        """The nodes of `regard tune`: those of Regard before the Trainer, and the Tuner.

        The worker adds the user's own nodes for which one of them waits.
        """
        return (*self.regard_nodes[: self.regard_nodes.index("Trainer")], TUNER)

    @property
    def own_code(self) -> dict[KeyPath, str]:
        """The references to code of the user's own, MODULE:NAME, by their keys."""
        run_fn = self.training.run_fn
        training: dict[KeyPath, str] = {("training", "run_fn"): run_fn} if run_fn else {}
        return {**training, **self.pipeline.references}

    @property
    def own_modules(self) -> list[str]:
        """The modules of the user's own."""
        return [module_of(reference) for reference in self.own_code.values()]

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features of a raw row, as ``model`` limits them, ``data.extra``, and the tag."""
        return (*self.description.row_features(self.model), *self._extra_columns)

    @property
    def _extra_columns(self) -> tuple[Feature, ...]:
        guidance = self.training.guided_alignment
        return extra_features(self.data, guidance.links if guidance else None)

    @property
    def corpus(self) -> Corpus:
        """The section ``data`` with the features of a row."""
        return Corpus(self.data, self.features)

    @property
    def stored_features(self) -> tuple[Feature, ...]:
        """The features of the rows that CorpusGen writes: ``features`` and the span."""
        return (*self.description.row_features(self.model), *self.extra_features)

    @property
    def extra_features(self) -> tuple[Feature, ...]:
        """The features of the rows that CorpusGen writes in addition to those of the task."""
        span = (Feature(SPAN, TEXT, "extra"),) if self.data.has_spans else ()
        return (*self._extra_columns, *span)

    @property
    def trained_tokenizer(self) -> TokenizerConfig | None:
        """The section ``tokenizer``, with the tags of other sections as symbols."""
        if self.tokenizer is None:
            return None
        symbols = list(self.tokenizer.user_defined_symbols)
        tag = getattr(self.augmentation and self.augmentation.back_translation, "tag", None)
        if tag:
            symbols.append(tag)
        changes = {"user_defined_symbols": tuple(dict.fromkeys(symbols))}
        return self.tokenizer.model_copy(update=changes)

    @property
    def tokenizer_json(self) -> str:
        """``trained_tokenizer`` as JSON."""
        tokenizer = self.trained_tokenizer
        return tokenizer.to_json() if tokenizer is not None else "null"

    @property
    def has_references(self) -> bool:
        """Whether the file refers to environment variables other than Regard's own folders."""
        return bool(self._references)

    def with_references(self, references: References) -> Self:
        """Return the configuration with the variables that its values refer to."""
        copy = self.model_copy()
        copy._references = {path: values for path, values in references.items() if values}
        return copy

    @property
    def origin(self) -> ConfigOrigin:
        """Where the configuration was written."""
        return self._origin

    def with_origin(self, origin: ConfigOrigin) -> Self:
        """Return the configuration with another origin."""
        copy = self.model_copy()
        copy._origin = origin
        return copy

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with other values, which are checked as in a file.

        A mapping is merged with the section of its key. If its ``type`` changes, it replaces the
        section.

        Args:
            values: The values by key, such as ``{"training.max_epochs": 3}``. The item of a list is
                counted from 0: ``model.encoder.0.units``. Relative paths refer to the working
                directory.

        Raises:
            UserError: A value is invalid. The message names every problem with its key.
            ValueError: The configuration was not loaded.
        """
        if self._origin.change is None:
            raise ValueError("Only a configuration from `load_config` can be changed.")
        changed: Self = self._origin.change(values)
        return changed

    def __repr__(self) -> str:
        file, values = self._origin.file, self._origin.assignments
        origin = f", file={file!r}" * bool(file) + f", values={values}" * bool(values)
        return f"Config({self.name!r}, task={self.task!r}{origin})"

    def locate(self, key: str | None) -> str | None:
        """Return a key with its file and line; anything else, and an unknown place, as it is."""
        parts = key.split(".") if key else []
        path = tuple(int(part) if part.isdecimal() else part for part in parts)
        if not path or not self._origin.mapping.has(path[:1]):
            return key
        return self._origin.mapping.location(path).removesuffix(": ")

    def recorded(self, exclude: set[str] | None = None) -> dict[str, JsonValue]:
        """Return plain values for a file: they refer to variables, as the user's file does.

        Args:
            exclude: Names of sections to leave out.
        """
        values = self.model_dump(mode="json", exclude=exclude)
        return restore_references(values, self._references)

    def section_json(self, name: str) -> str:
        """Return a section or value as canonical JSON; ``null`` for a section without settings."""
        content = getattr(self, name)
        return content.to_json() if isinstance(content, Section) else json.dumps(content)

    def digest(self, *sections: str) -> str:
        """Return a short digest of the given sections, or of all of them."""
        names = sections or tuple(type(self).model_fields)
        text = json.dumps({name: self.section_json(name) for name in names}, sort_keys=True)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def require_task(name: str, where: str) -> str:
    """Return the name of a task.

    Raises:
        UserError: The task does not exist.
    """
    if name not in tasks.TASKS:
        raise UserError(unknown(name, tasks.TASKS, "a task"), where)
    return name


@functools.cache
def config_class(task: str) -> type[Config]:
    """Return the class of configurations of one task.

    Raises:
        ValueError: The task does not exist.
    """
    described = tasks.describe(task)
    fields: dict[str, tuple[Any, Any]] = dict.fromkeys(("tokenizer", "search"), (type(None), None))
    task_options = {"default": task} if task == DEFAULT_TASK else {"examples": [task]}
    fields["task"] = (Literal[task], _field("task", **task_options))
    fields["data"] = (data_class(described), _field("data"))
    for name, (annotation, default) in task_sections(described).items():
        fields[name] = (annotation, _field(name, default=default))
    return create_model("Config", __base__=Config, __doc__=Config.__doc__, **fields)  # type: ignore[call-overload]


def _field(name: str, **options: Any) -> Any:
    """Return a field with the description of the field that it replaces."""
    return Field(description=Config.model_fields[name].description, **options)
