"""The configuration of a training, which the graph gives to the Trainer and to the Tuner."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, SerializeAsAny, TypeAdapter, ValidationInfo
from pydantic import field_validator as validates
from typing_extensions import Self

from regard.components.common.artifact_files import shards_of
from regard.components.settings.serving import ServingConfig
from regard.components.settings.tags import TagsConfig
from regard.models import tasks
from regard.models.settings.base import Section
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.description import Description

NODE = "Trainer"  # the name of the component in events


class StartingModel(BaseModel):
    """An exported model whose weights a training reads, for a warm start or for an ensemble.

    Attributes:
        model: its name in messages, for example ``translation@3``.
        path: the folder of its SavedModel.
        digest: the digest of the folder's content.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    model: str
    path: str
    digest: str


class DataForTrainer(BaseModel):
    """The fields of the section ``data`` that a training reads.

    Attributes:
        tags: the section ``tags``; None for sources without tags.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tags: TagsConfig | None = None


class TrainerConfig(BaseModel):
    """The sections of the YAML file that a training depends on, and its folders.

    Parse it once, from TFX's ``custom_config``; keys that it does not name are ignored.

    Attributes:
        task: the name of the task.
        model: the section ``model``, of the task's own class.
        training: the section ``training``.
        search: the section ``search``; None for a task without a search.
        checkpoints: the folder that contains a folder of checkpoints for each training. It
            outlives the run: a killed training resumes from it. Empty: a folder next to the
            outputs of the node's executions.
        checkpoint_key: the name of this training's folder, a digest of its settings, code and
            data. Empty: the Trainer computes it; the data may be unknown when the graph is built.
        published: the folder in the registry that the models of this pipeline are pushed to, if
            the Trainer looks up the models below.
        start: the model to start from; None for random weights.
        ensemble: the other models of the exported ensemble.
        serving: the fields of the section ``serving`` that are marked with ``ReadByTrainer``; they
            change the export and not the weights.
        data: the fields of the section ``data`` that are marked so.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    task: str
    model: SerializeAsAny[Section]
    training: TrainingConfig
    search: SerializeAsAny[Section] | None = None
    checkpoints: str = ""
    checkpoint_key: str = ""
    published: str = ""
    start: StartingModel | None = None
    ensemble: tuple[StartingModel, ...] = ()
    serving: ServingConfig = ServingConfig()
    data: DataForTrainer = DataForTrainer()

    @validates("model", mode="before")
    @classmethod
    def _parse_model(cls, value: Any, info: ValidationInfo) -> Any:
        return _description(info).model.model_validate(value)

    @validates("search", mode="before")
    @classmethod
    def _parse_search(cls, value: Any, info: ValidationInfo) -> Any:
        search = _description(info).search
        if search is None or value is None:
            return None
        return TypeAdapter(search[0]).validate_python(value)

    @validates("start", mode="before")
    @classmethod
    def _parse_start(cls, value: Any) -> Any:
        return value or None

    @property
    def checkpoint_folder(self) -> Path:
        """The folder of this training's checkpoints.

        Raises:
            ValueError: one of its parts is still empty.
        """
        if not (self.checkpoints and self.checkpoint_key):
            raise ValueError("The training has no folder for its checkpoints.")
        return Path(self.checkpoints, self.checkpoint_key)

    @property
    def model_settings(self) -> dict[str, Any]:
        """The section ``model`` as plain JSON values."""
        return self.model.model_dump(mode="json")


@dataclass(frozen=True)
class TrainingData:
    """The files of a training.

    Attributes:
        train_files: the paths of the transformed rows to train on.
        eval_files: the paths of the transformed rows to evaluate on.
        transform_graph: the folder of the Transform graph, with the tokenizers.
    """

    train_files: list[str]
    eval_files: list[str]
    transform_graph: str

    @classmethod
    def from_fn_args(cls, fn_args: Any) -> Self:
        """Return the files that TFX's ``FnArgs`` name."""
        return cls(
            train_files=shards_of(fn_args.train_files),
            eval_files=shards_of(fn_args.eval_files),
            transform_graph=fn_args.transform_graph_path,
        )


class TrainingJob(BaseModel):
    """A training and the folders of its outputs.

    Attributes:
        config: the configuration.
        data: the files to read.
        run_folder: for logs, the Keras model and ``training.json``.
        export_folder: for the SavedModel.
    """

    model_config = ConfigDict(frozen=True)

    config: TrainerConfig
    data: TrainingData
    run_folder: str
    export_folder: str


def _description(info: ValidationInfo) -> Description:
    return tasks.describe(info.data["task"])
