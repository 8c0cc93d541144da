"""What a training receives: its settings, what a run adds, and its files.

The way of a key from the YAML file to the training loop, for example ``training.clip_norm``:

1. ``pipeline/config/load.py`` reads the file, checks it, and returns a ``Config``. Its sections are
   classes in ``components/settings`` and ``models/settings``, here ``TrainingConfig``.
2. ``pipeline/graph.py`` passes the sections that a training depends on, and the folders and models
   of the run, to the component (``components/nodes.py``). Both become JSON values in its property
   ``custom_config``, under the keys `CONFIG` and `RUN`. TFX stores the property and compares it in
   its cache.
3. ``components/trainer/executor.py`` replaces the settings that a run on a cluster may change, and
   parses both parts, once in the process: a `TrainerConfig` and a `RunInputs`.
4. ``components/trainer/run_fn.py`` adds the files: a `TrainingJob`. It is immutable, and JSON or
   pickle can hold it as a whole, so that another process can train: the worker of a distributed
   training receives it as JSON.
5. ``components/trainer/train_and_export.py`` trains and writes the outputs.
   ``components/trainer/train.py`` builds the model, compiles it with the optimizer
   (``clip_norm`` acts in ``components/trainer/optimizer.py``), and passes the section ``training``
   to ``fit`` in ``components/trainer/training_loop.py``.

The Tuner receives the same two parts; each of its trials is a `TrainingJob` with other values.

This module does not import TensorFlow.
"""

from collections.abc import Mapping
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
from regard.models.settings.protect import ProtectConfig
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.description import Description

NODE = "Trainer"  # the name of the component in events
# The keys of TFX's ``custom_config``: a `TrainerConfig` and a `RunInputs`.
CONFIG, RUN = "config", "run"


class TrainerConfig(BaseModel):
    """The settings of a training: the sections of the YAML file that it depends on.

    Attributes:
        task: the name of the task.
        model: the section ``model``, of the task's own class.
        training: the section ``training``.
        search: the section ``search``; None for a task without a search.
        serving: the fields of the section ``serving`` that are marked with ``ReadByTrainer``; they
            change the export and not the weights.
        tags: the names and the temperature of ``data.tags``, a field of the section ``data`` that
            is marked so; None for sources without tags.
        protect: ``data.protect``, which is marked so, too; None without protected spans.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str
    model: SerializeAsAny[Section]
    training: TrainingConfig
    search: SerializeAsAny[Section] | None = None
    serving: ServingConfig = ServingConfig()
    tags: TagsConfig | None = None
    protect: ProtectConfig | None = None

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

    @property
    def model_settings(self) -> dict[str, Any]:
        """The section ``model`` as plain JSON values."""
        return self.model.model_dump(mode="json")

    def to_plain_values(self) -> dict[str, Any]:
        """Return all settings as JSON values; of ``serving`` only those that the Trainer reads."""
        return {**self.model_dump(mode="json"), "serving": self.serving.for_trainer()}

    def with_training(self, **changes: Any) -> Self:
        """Return the settings with other values in the section ``training``."""
        return self.model_copy(update={"training": self.training.model_copy(update=changes)})


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


class RunInputs(BaseModel):
    """What a run adds to the settings of a training: folders, and models to start from.

    Attributes:
        checkpoints: the folder that contains a folder of checkpoints for each training. It
            outlives the run: a killed training resumes from it. Empty: a folder next to the
            outputs of the node's executions.
        checkpoint_key: the name of this training's folder, a digest of its settings, code and
            data. Empty: the Trainer computes it; the data may be unknown when the graph is built.
        is_rewirable: whether code of the user's own may have connected the Trainer with other data
            than ``checkpoint_key`` describes: the Trainer adds a digest of the files.
        published: the folder in the registry that the models of this pipeline are pushed to, if
            the Trainer looks up the models below.
        start: the model to start from; None for random weights.
        ensemble: the other models of the exported ensemble.
        vectors: the digests of the files of word vectors and of other words, by their keys. They
            are only compared by TFX's cache: ``model.pretrained`` names the files.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    checkpoints: str = ""
    checkpoint_key: str = ""
    is_rewirable: bool = False
    published: str = ""
    start: StartingModel | None = None
    ensemble: tuple[StartingModel, ...] = ()
    vectors: Mapping[str, str] = {}

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
    """A training as a whole: everything that a process needs in order to train.

    Attributes:
        config: the settings.
        run: what the run adds to them.
        data: the files to read.
        run_folder: the folder for logs, the Keras model and ``training.json``.
        export_folder: the folder for the SavedModel; empty for a training without an export.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    config: TrainerConfig
    run: RunInputs
    data: TrainingData
    run_folder: str
    export_folder: str = ""

    @classmethod
    def from_fn_args(cls, fn_args: Any) -> Self:
        """Return the job that TFX's ``FnArgs`` describe.

        Their ``custom_config`` contains a `TrainerConfig` and a `RunInputs`, which the executor has
        parsed, or the JSON values of both.
        """
        return cls(
            config=TrainerConfig.model_validate(fn_args.custom_config[CONFIG]),
            run=RunInputs.model_validate(fn_args.custom_config[RUN]),
            data=TrainingData.from_fn_args(fn_args),
            run_folder=fn_args.model_run_dir,
            export_folder=fn_args.serving_model_dir,
        )


def _description(info: ValidationInfo) -> Description:
    return tasks.describe(info.data["task"])
