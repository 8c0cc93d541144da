"""Learning rates over the steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from models.serialization import register


@register
class WarmupSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """A linear warm-up to ``peak``, then one of several ways down.

    Args:
        peak: the learning rate at the end of the warm-up.
        warmup_steps: the steps until then; 0 starts at the peak.
        decay: ``constant``; ``inverse_sqrt`` (peak · √(warmup / step), Vaswani et al. 2017,
            §5.3); ``exponential`` (times ``rate`` every ``decay_steps`` from ``start_step`` on).
        start_step: where the exponential decay begins.
        decay_steps: the steps in which it falls by ``rate``.
        rate: the factor.
    """

    def __init__(
        self,
        peak: float,
        warmup_steps: int = 0,
        decay: str = "constant",
        start_step: int = 0,
        decay_steps: int = 1,
        rate: float = 1.0,
    ):
        self.settings: dict[str, Any] = {
            "peak": peak,
            "warmup_steps": warmup_steps,
            "decay": decay,
            "start_step": start_step,
            "decay_steps": decay_steps,
            "rate": rate,
        }

    def __call__(self, step: Any) -> Any:
        s = self.settings
        step = ops.cast(step, "float32") + 1.0
        warm = max(float(s["warmup_steps"]), 1.0)
        rate = ops.minimum(1.0, step / warm)
        if s["decay"] == "inverse_sqrt":
            rate = ops.minimum(step / warm, ops.sqrt(warm / step))
        elif s["decay"] == "exponential":
            beyond = ops.maximum(0.0, step - float(s["start_step"])) / float(s["decay_steps"])
            rate = rate * ops.power(float(s["rate"]), beyond)
        return s["peak"] * rate

    def get_config(self) -> dict[str, Any]:
        return dict(self.settings)


def schedule(learning_rate: float, settings: Mapping[str, Any]) -> WarmupSchedule:
    """The schedule that the YAML's ``training.schedule`` describes."""
    options = {name: value for name, value in settings.items() if name != "type"}
    return WarmupSchedule(learning_rate, decay=settings["type"], **options)
