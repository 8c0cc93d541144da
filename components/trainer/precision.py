"""The number format in which a training computes where ``training.precision`` leaves it open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from components import events
from components.trainer.pulse import NODE

# NVIDIA's compute capabilities from which the tensor cores have these formats: Ampere and Volta.
_FORMATS = {(8, 0): "mixed_bfloat16", (7, 0): "mixed_float16"}


def resolved(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of a training, with the precision that ``auto`` means on this machine.

    What is mixed has its own checkpoints, for a training in float16 has more to store.

    Args:
        config: ``training`` and ``checkpoints``, and anything else.
    """
    training = config["training"]
    if training["precision"] != "auto":
        return dict(config)
    chosen = of_gpus(_capabilities())
    checkpoints = config["checkpoints"]
    if chosen != "float32":
        checkpoints = f"{checkpoints}-{chosen}"
        events.emit("note", node=NODE, text=f"training.precision: auto is {chosen} on this GPU")
    training = {**training, "precision": chosen}
    return {**config, "training": training, "checkpoints": checkpoints}


def of_gpus(capabilities: list[tuple[int, int]]) -> str:
    """What GPUs of these compute capabilities are all fast in; float32 where there is none."""
    if capabilities:
        for least, name in _FORMATS.items():
            if min(capabilities) >= least:
                return name
    return "float32"


def _capabilities() -> list[tuple[int, int]]:
    details = map(tf.config.experimental.get_device_details, tf.config.list_physical_devices("GPU"))
    return [one.get("compute_capability", (0, 0)) for one in details]
