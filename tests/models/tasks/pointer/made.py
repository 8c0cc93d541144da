"""Small pointers of each kind, and rows for them."""

from typing import Any

import keras
import numpy as np

from regard.models import tasks
from regard.models.settings.search import BeamSearchConfig
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.pointer.description import PointerModelConfig

PREPROCESSING, NETWORK = tasks.get_preprocessing("pointer"), tasks.get_network("pointer")
SMALL = {"width": 8, "encoder": {"layers": 1, "heads": 2, "feed_forward": 6}}
RECURRENT = {"type": "recurrent", "units": 5}
BEAM = BeamSearchConfig(beam_size=3, length_penalty=0.0, long_source="refuse").model_dump(
    mode="json"
)


def section(**changes: Any) -> dict[str, Any]:
    """A section ``model``."""
    decoder = {"units": 7, **changes.pop("decoder", {})}
    return PointerModelConfig.model_validate({**SMALL, "decoder": decoder, **changes}).model_dump(
        mode="json"
    )


def training(**changes: Any) -> dict[str, Any]:
    """A section ``training``."""
    return TrainingConfig.model_validate({"label_smoothing": 0.0, **changes}).model_dump(
        mode="json"
    )


def build(model: dict[str, Any], certain: float = 1.0) -> Any:
    """A model of random weights; the more ``certain``, the further from uniform."""
    keras.utils.set_random_seed(6)
    config = PointerModelConfig.model_validate(model)
    built = NETWORK.build(config, TrainingConfig(label_smoothing=0.0), {})
    for weight in built.weights:
        weight.assign(weight * certain)
    return built


def rows(lengths: Any, width: int | None = None, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Points ``[batch, width, 2]`` and their numbers, as a request has them."""
    lengths = np.asarray(lengths, "int32")
    width = int(lengths.max(initial=0)) if width is None else width
    points = np.zeros((len(lengths), width, 2), "float32")
    for row, length in enumerate(lengths):
        points[row, :length] = np.random.default_rng(seed + row).random((length, 2))
    return points, lengths
