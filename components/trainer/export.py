"""Export of a trained model: the SavedModel, its contract, and what a warm start needs."""

import base64
import contextlib
import json
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from regard.components.common.tokenizers import create_tokenizers, vocabulary_sizes
from regard.components.settings.trainer import StartingModel, TrainerConfig
from regard.components.trainer.confidence import calibrate
from regard.components.trainer.optimizer_state import adam_moments
from regard.components.trainer.vocabulary_mapping import read_stored_tokenizers
from regard.components.trainer.warm_start_checkpoint import WarmStartCheckpoint
from regard.core.errors import UserError
from regard.core.files import atomic_path, replace_dir, write_json
from regard.core.regular_files import read_regular
from regard.models import tasks
from regard.models.ensemble import Ensemble
from regard.models.tasks.network import Network
from regard.models.tasks.served_model import ExportedModel, Row
from regard.models.trainable_model import TrainableModel
from regard.serving import saved_model
from regard.serving.contract import (
    CONTRACT,
    IN_MEMORY,
    RECORD,
    TRAINING,
    Contract,
    SavedModelError,
    read_contract,
    text_inputs,
)

READ_ERRORS: Any = (OSError, EOFError, ValueError, KeyError, TypeError, SavedModelError)
READ_ERRORS += (zipfile.BadZipFile, tf.errors.OpError)
_MAX_RECORD_BYTES = 16 << 20
_VARIABLE = "{}/{}/.ATTRIBUTES/VARIABLE_VALUE"


def export(
    model: TrainableModel,
    network: Network,
    config: TrainerConfig,
    tokenizers: Mapping[str, Any],
    folder: str | Path,
    rows: Iterable[Row] = (),
    ensemble: Sequence[StartingModel] = (),
    calibration_rows: Iterable[Row] = (),
) -> None:
    """Write the SavedModel with the task's signatures, its contract, and reference outputs.

    The reference outputs are those of the model in memory; whoever loads the SavedModel can compare
    its outputs with them. The exported model computes in float32, so that its outputs do not
    depend on the precision of the training.

    Args:
        model: the trained model.
        network: what the task trains.
        config: the settings of the training.
        tokenizers: one per text feature.
        folder: replaced atomically, if it contains an earlier export.
        rows: training rows for the reference outputs.
        ensemble: other models; not empty: the ensemble of the trained model and these is written.
        calibration_rows: rows of the eval split for ``serving.confidence``, if it is set.
    """
    float_model = build_float32(network, config, tokenizers)
    float_model.set_weights(model.get_weights())
    if ensemble:
        others = [RebuiltModel(Path(member.path), member.model) for member in ensemble]
        float_model = Ensemble([float_model, *(other.model for other in others)])
        float_model.build()
    export_float32(float_model, network, config, tokenizers, folder, rows, calibration_rows)


def export_float32(
    model: TrainableModel,
    network: Network,
    config: TrainerConfig,
    tokenizers: Mapping[str, Any],
    folder: str | Path,
    rows: Iterable[Row] = (),
    calibration_rows: Iterable[Row] = (),
) -> None:
    """Write a model that computes in float32; see ``export``."""
    module = _create_served_module(network, model, config, tokenizers)
    if config.serving.confidence:
        module.calibration = calibrate(module, calibration_rows, config.serving.confidence)
    served = module.served_model()
    inputs = [module.raw_inputs(row) for row in rows]
    references = json.dumps(_reference_outputs(served, inputs), ensure_ascii=False) + "\n"
    # TensorFlow traces functions in another context while it saves a model, a second time if they
    # were called before; but not graphs.
    graphs = {name: call.get_concrete_function() for name, call in served.signatures.items()}
    final = Path(folder)
    final.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{final.name}.", dir=final.parent) as work:
        temporary = Path(work, "export")
        tf.saved_model.save(served.module, str(temporary), signatures=graphs)
        write_json(temporary / CONTRACT, served.contract)
        (temporary / IN_MEMORY).write_text(references, encoding="utf-8")
        replace_dir(temporary, final, CONTRACT)


def build_float32(network: Network, config: TrainerConfig, tokenizers: Mapping[str, Any]) -> Any:
    """Build the model of a training in float32, with random weights."""
    training = config.training.model_copy(update={"precision": "float32"})
    return network.build(config.model, training, vocabulary_sizes(tokenizers))


def _create_served_module(
    network: Network, model: TrainableModel, config: TrainerConfig, tokenizers: Mapping[str, Any]
) -> Any:
    """Return what the settings of a training export."""
    return tasks.get_served_module(config.task)(
        network.description,
        model,
        tokenizers,
        config.model,
        config.search,
        split_sentences=config.serving.split_sentences,
        int8=config.serving.quantization == "int8",
        tags=config.tags.known if config.tags else (),
        protect=config.protect,
    )


def _reference_outputs(
    served: ExportedModel, rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, object]]:
    """The rows with the outputs of the most detailed signature, as JSON values."""
    model = InMemoryModel(served)
    texts = text_inputs(model.contract)
    references: list[dict[str, object]] = []
    for row in rows:
        inputs = {**row, **{key: saved_model.decode_texts(row[key]) for key in texts}}
        # A model may reject rows that are too long or too short; the export continues without.
        with contextlib.suppress(tf.errors.InvalidArgumentError, saved_model.InputLengthError):
            (prediction,) = saved_model.predict_in_detail(model, [inputs])
            references.append(
                {
                    "inputs": {key: _to_json(value) for key, value in inputs.items()},
                    "answer": {key: _to_json(value) for key, value in prediction.outputs.items()},
                    "device": model.device,
                }
            )
    return references


class InMemoryModel(saved_model.ServedModel):
    """A model that is used without being written; only signatures that are used are traced.

    Args:
        served: the exported model.
    """

    def __init__(self, served: ExportedModel):
        self.contract, self._functions = served.contract, served.signatures
        self.device = "GPU" if tf.config.get_visible_devices("GPU") else "CPU"

    def run(self, name: str, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        function: Any = self._functions[name]
        # By position, because a function of several tasks has one parameter for texts and images.
        tensors = [tf.constant(inputs[x.name], x.dtype) for x in function.input_signature]
        try:
            return {key: value.numpy() for key, value in function(*tensors).items()}
        except tf.errors.InvalidArgumentError as error:
            raise saved_model.InputLengthError.parse(error.message) or error from None

    def signature(self, name: str) -> Any:
        return self._functions[name]


def _to_json(value: Any) -> Any:
    """A value for JSON; images become base64 text."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return value.tolist() if hasattr(value, "tolist") else value


def write_warm_start(
    folder: Path, model: TrainableModel, config: TrainerConfig, tokenizers: Mapping[str, bytes]
) -> None:
    """Write the file for a warm start into the folder of a SavedModel.

    Args:
        folder: the folder of the SavedModel.
        model: the trained model, with its optimizer.
        config: the configuration of the training.
        tokenizers: the serialized SentencePiece model of each text feature.
    """
    about: dict[str, object] = {
        "task": config.task,
        "model": config.model_settings,
        "search": config.search and config.search.model_dump(mode="json"),
        "weights": [weight.path for weight in model.weights],
    }
    data = {
        f"tokenizer/{name}": np.frombuffer(serialized, np.uint8)
        for name, serialized in tokenizers.items()
    }
    start: Any = config.training.warm_start
    if start and start.optimizer:
        about["updates"] = int(model.optimizer.iterations)
        values = enumerate(adam_moments(model.optimizer))
        data |= {f"moment/{i}": np.asarray(moment) for i, moment in values}
    with atomic_path(folder / TRAINING) as temporary, open(temporary, "wb") as file:
        np.savez(file, allow_pickle=False, about=np.array(json.dumps(about)), **data)


def read_warm_start(folder: Path, name: str = "") -> WarmStartCheckpoint | None:
    """Read what a SavedModel provides for a warm start; None if it has no such file.

    Args:
        folder: the folder of the SavedModel.
        name: the name of the model in messages.

    Raises:
        OSError, ValueError, KeyError, zipfile.BadZipFile, tf.errors.OpError: a file is damaged.
    """
    path = folder / TRAINING
    if not path.is_file():
        return None
    reader = tf.train.load_checkpoint(str(folder / "variables" / "variables"))
    with np.load(path) as file:
        about = json.loads(str(file["about"]))
        count = sum(name.startswith("moment/") for name in file.files)
        values = [file[f"moment/{i}"] for i in range(count)]
    return WarmStartCheckpoint(
        name=name,
        task=about["task"],
        model=about["model"],
        weight_names=about["weights"],
        weights=[_read_weight(reader, i) for i in range(len(about["weights"]))],
        tokenizers=read_stored_tokenizers(folder),
        updates=about.get("updates", 0),
        adam_moments=values,
        search=about.get("search") or _recorded_search(folder),
    )


def _recorded_search(folder: Path) -> Mapping[str, object] | None:
    """Return the section ``search`` of the record of a version, which older exports lack."""
    try:
        record = json.loads(read_regular(folder / RECORD, _MAX_RECORD_BYTES))
        search = record["config"]["search"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return search if isinstance(search, dict) else None


def _read_weight(reader: Any, number: int) -> np.ndarray:
    """Return a weight of a SavedModel; a quantized one as float32."""
    value = reader.get_tensor(_VARIABLE.format("weights", number))
    scales = _VARIABLE.format("scales", number)
    return value * reader.get_tensor(scales) if reader.has_tensor(scales) else value


class RebuiltModel:
    """A Keras model with the weights of a SavedModel, which can be exported again.

    Attributes:
        name: its name in messages.
        config: the settings of its training that its export depends on, without a quantization.
        serialized: the SentencePiece model of each text feature.
        network: what its task trains.
        model: the Keras model, in float32.

    Args:
        folder: the SavedModel's folder.
        name: its name in messages.

    Raises:
        UserError: weights or settings are missing, damaged, or of another version of Regard.
    """

    def __init__(self, folder: Path, name: str):
        self.name = name
        try:
            checkpoint = read_warm_start(folder, name)
            if checkpoint is None:
                raise ValueError("it is an ensemble, or was exported without its settings")
            self.config = _exported_config(checkpoint, read_contract(folder))
            self.serialized = checkpoint.tokenizers
            self.tokenizers = create_tokenizers(self.serialized)
            self.network = tasks.get_network(self.config.task)
            self.model: Any = build_float32(self.network, self.config, self.tokenizers)
            self.model.set_weights(checkpoint.weights)
        except READ_ERRORS as error:
            message = f"{name} cannot be built again: {error}"
            remedy = "Give a model that was trained with this version of Regard."
            raise UserError(message, str(folder), remedy) from error

    def served(self, search: Any = None) -> ExportedModel:
        """Return the model as it is exported, by default with its own search."""
        config = self.config
        if search:
            config = config.model_copy(update={"search": search})
        module = _create_served_module(self.network, self.model, config, self.tokenizers)
        return module.served_model()


def _exported_config(checkpoint: WarmStartCheckpoint, contract: Contract) -> TrainerConfig:
    """Return the settings that an exported model records."""
    tags = contract.get("tags")
    return TrainerConfig.model_validate(
        {
            "task": checkpoint.task,
            "model": checkpoint.model,
            "search": checkpoint.search,
            "training": {},
            "serving": {"split_sentences": saved_model.splits_sentences(contract)},
            "tags": {"names": tags} if tags else None,
            "protect": contract.get("protect"),
        }
    )
