"""A model of another framework: what is needed to export it as one of Regard's."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pydantic

from regard.components.common.tokenizers import create_tokenizers
from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer.export import build_float32
from regard.core.errors import NotFoundError, UserError
from regard.core.regular_files import read_regular
from regard.core.yaml_text import YAMLError, from_yaml
from regard.models import tasks

_MAX_SETTINGS_BYTES = 1 << 20


class WeightReader(ABC):
    """Reads the weights of a model."""

    @abstractmethod
    def __call__(self, name: str) -> np.ndarray:
        """Return a weight by its name (``weight_name``).

        Raises:
            UserError: it is missing or cannot be read.
        """

    def unread(self) -> Iterable[str]:
        """Return weights that no call has read; the model computes something else with them."""
        return ()


@dataclass(frozen=True)
class ForeignModel:
    """A model that was read from a folder.

    Attributes:
        kind: the format of the folder, for example ``marian``.
        folder: the folder.
        config: the sections of a configuration that describe the model.
        tokenizers: the serialized SentencePiece model of each text feature.
        read_weight: reads the weights.
        files: the names of the files that were read.
        licence: the licence that the folder states; empty without one.
    """

    kind: str
    folder: Path
    config: TrainerConfig
    tokenizers: Mapping[str, bytes]
    read_weight: WeightReader
    files: Iterable[str]
    licence: str = ""

    def build(self) -> tuple[Any, Any, dict[str, Any]]:
        """Build the Keras model with the weights.

        Returns:
            What the task trains, the model in float32, and the tokenizers.

        Raises:
            UserError: a weight is missing, not finite, or has another shape, or is not known.
        """
        tokenizers = create_tokenizers(self.tokenizers)
        model = build_random(self.folder, self.config, tokenizers)
        for weight in model.weights:
            name = weight_name(weight.path)
            value = self.read_weight(name)
            if tuple(value.shape) != tuple(weight.shape):
                raise UserError(
                    f"The weight {name} has the shape {tuple(value.shape)} instead of "
                    f"{tuple(weight.shape)}.",
                    str(self.folder),
                    "The file with the settings and that with the weights belong to different "
                    "models; fetch both again.",
                )
            if not np.isfinite(value).all():
                message = f"The weight {name} is not finite: the model's training diverged."
                raise UserError(message, str(self.folder), "Import another checkpoint of it.")
            weight.assign(value)
        for name in self.read_weight.unread():
            raise UserError(
                f"There is a weight {name}, which this kind of model does not have.",
                str(self.folder),
                "Only models whose computation is the same can be imported.",
            )
        return tasks.get_network(self.config.task), model, tokenizers


def read_settings(path: Path, remedy: str) -> dict[str, Any]:
    """Read a YAML file with the settings of a model.

    Args:
        path: the file.
        remedy: what to do if the file is missing or has another content.

    Raises:
        UserError: the file is missing, or its content is not a mapping.
    """
    try:
        values = from_yaml(read_regular(path, _MAX_SETTINGS_BYTES).decode("utf-8"))
    except FileNotFoundError:
        raise NotFoundError("The file does not exist.", str(path), remedy) from None
    except RecursionError:
        raise UserError("The values are nested too deeply.", str(path), remedy) from None
    except (OSError, ValueError, YAMLError) as error:
        raise UserError(f"The file cannot be read: {error}", str(path), remedy) from None
    if not isinstance(values, dict):
        raise UserError("The content is not a mapping of keys to values.", str(path), remedy)
    return values


def create_config(values: Mapping[str, Any], where: Path) -> TrainerConfig:
    """Return the sections of a configuration.

    Args:
        values: the sections as plain values.
        where: the file that they come from.

    Raises:
        UserError: a value is not valid.
    """
    try:
        return TrainerConfig.model_validate(values)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        remedy = "Only models with the settings of Regard's own can be imported."
        raise UserError(f"{key}: {first['msg']}", str(where), remedy) from None


def build_random(folder: Path, config: TrainerConfig, tokenizers: Mapping[str, Any]) -> Any:
    """Build a model with random weights, in float32.

    Raises:
        UserError: its settings cannot work together.
    """
    try:
        return build_float32(tasks.get_network(config.task), config, tokenizers)
    except ValueError as error:
        remedy = "Check the settings of the model in this folder."
        raise UserError(f"The model cannot be built: {error}", str(folder), remedy) from None


def weight_name(path: str) -> str:
    """Return the name of a weight in ``regard import npz`` from its path in Keras.

    The path begins with the model's name, and Keras may add a number to the name of a layer that
    exists several times in a process: ``seq2_seq_1/transformer_encoder_1/norm/gamma`` is
    ``encoder/norm/gamma``.
    """
    _, layer, *rest = path.split("/")
    side = next((side for side in ("encoder", "decoder") if side in layer.split("_")), layer)
    return "/".join((side, *rest))
