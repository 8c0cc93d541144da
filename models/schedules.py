"""Learning rate schedules."""

import math
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from regard.models.serialization import by_name, register


class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """Base class: a linear warm-up to ``peak``, then the decay of the subclass.

    A step is one update of the weights. Keras counts batches, ``accumulate`` per step.

    Args:
        peak: the learning rate at the end of the warm-up.
        warmup_steps: the number of warm-up steps; 0 starts at the peak.
        accumulate: the number of batches per step.
        **options: the options of the subclass.
    """

    def __init__(self, peak: float, warmup_steps: int = 0, accumulate: int = 1, **options: Any):
        self.peak, self.warmup_steps, self.accumulate = peak, warmup_steps, accumulate
        self.options = options

    def __call__(self, step: Any) -> Any:
        updates = ops.floor(ops.cast(step, "float32") / float(self.accumulate))
        return self.rate(updates + 1.0)

    def rate(self, step: Any) -> Any:
        """Return the learning rate of a step, starting at 1; float32."""
        warmup = ops.minimum(1.0, step / max(float(self.warmup_steps), 1.0))
        return self.peak * warmup * self.decay(step)

    def decay(self, step: Any) -> Any:
        """Return the factor on the peak; 1 until the decay starts."""
        raise TypeError(f"{type(self).__name__} does not implement decay.")

    def get_config(self) -> dict[str, Any]:
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "accumulate": self.accumulate,
            **self.options,
        }


@register
class Constant(Schedule):
    """No decay."""

    def decay(self, step: Any) -> Any:
        return 1.0


@register
class InverseSqrt(Schedule):
    """peak · √(warmup / step) (Vaswani et al. 2017, §5.3, with a free peak)."""

    def decay(self, step: Any) -> Any:
        warmup = max(float(self.warmup_steps), 1.0)
        return ops.sqrt(warmup / ops.maximum(step, warmup))


@register
class Exponential(Schedule):
    """Multiply by ``rate`` per ``decay_steps``, from ``start_step`` on."""

    def decay(self, step: Any) -> Any:
        steps = ops.maximum(0.0, step - float(self.options["start_step"]))
        return ops.power(float(self.options["rate"]), steps / float(self.options["decay_steps"]))


@register
class Cosine(Schedule):
    """Half a cosine from the peak to ``min_learning_rate`` (Loshchilov & Hutter 2017, §3).

    ``steps`` is the step at which the minimum is reached; then the rate is constant.
    """

    def decay(self, step: Any) -> Any:
        span = max(float(self.options["steps"] - self.warmup_steps), 1.0)
        progress = ops.clip((step - float(self.warmup_steps)) / span, 0.0, 1.0)
        min_factor = self.options["min_learning_rate"] / self.peak
        return min_factor + (1.0 - min_factor) * 0.5 * (1.0 + ops.cos(progress * math.pi))


SCHEDULES = {
    "constant": Constant,
    "inverse_sqrt": InverseSqrt,
    "exponential": Exponential,
    "cosine": Cosine,
}


def schedule(
    learning_rate: float,
    settings: Mapping[str, Any],
    accumulate: int = 1,
    max_steps: int | None = None,
) -> Schedule:
    """Create the schedule that ``training.schedule`` describes.

    Args:
        learning_rate: the peak of the schedule.
        settings: ``type`` and the options.
        accumulate: the number of batches per step.
        max_steps: the last step of the training, the default end of a cosine.

    Raises:
        ValueError: the type is unknown, or a cosine has no end.
    """
    schedule_class = by_name("schedule", SCHEDULES, settings["type"])
    options = {name: value for name, value in settings.items() if name != "type"}
    if schedule_class is Cosine:
        options["steps"] = options.get("steps") or max_steps
        if not options["steps"]:
            raise ValueError("The cosine schedule needs steps, or training.max_steps.")
    return schedule_class(learning_rate, accumulate=accumulate, **options)
