"""Learning rate schedules."""

import inspect
import math
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from regard.core.bounds import Count, DecayRate, NonNegative, Positive
from regard.models.layer_sources import classes_of_module
from regard.models.serialization import by_name, checked_arguments, choice, spec


class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """Base class: a linear warm-up to ``peak``, then the decay of the subclass.

    A step is one update of the weights. Keras counts batches, ``accumulate`` per step.

    Args:
        warmup_steps: Steps until the learning rate reaches its peak; 0: none.
        peak: the learning rate at the end of the warm-up.
        accumulate: the number of batches per step.
    """

    def __init__(self, warmup_steps: Count = 0, *, peak: float, accumulate: int = 1):
        super().__init__()
        checked_arguments(locals())
        self.peak, self.warmup_steps, self.accumulate = peak, warmup_steps, accumulate
        self.settings: dict[str, Any] = {}  # the options of the subclass

    def __call__(self, step: Any) -> Any:
        updates = ops.floor(ops.cast(step, "float32") / float(self.accumulate))
        return self.rate_at(updates + 1.0)

    def rate_at(self, step: Any) -> Any:
        """Return the learning rate of a step, starting at 1; float32."""
        warmup = ops.minimum(1.0, step / max(float(self.warmup_steps), 1.0))
        return self.peak * warmup * self.decay(step)

    def decay(self, step: Any) -> Any:
        """Return the factor on the peak; 1 until the decay starts."""
        raise TypeError(f"{type(self).__name__} does not implement decay.")

    def get_config(self) -> dict[str, Any]:
        common = {"peak": self.peak, "accumulate": self.accumulate}
        return {"warmup_steps": self.warmup_steps, **self.settings, **common}


@choice("constant")
class Constant(Schedule):
    """Constant after a warm-up."""

    def decay(self, step: Any) -> Any:
        return 1.0


@choice("inverse_sqrt")
class InverseSqrt(Schedule):
    """Inverse square root of the step after a linear warm-up (Vaswani 2017).

    Vaswani et al. 2017, "Attention Is All You Need", §5.3, with a free peak:
    peak · √(warmup / step).
    """

    def __init__(self, warmup_steps: Positive = 4000, **common: Any):
        super().__init__(warmup_steps, **common)
        checked_arguments(locals())

    def decay(self, step: Any) -> Any:
        warmup = float(self.warmup_steps)
        return ops.sqrt(warmup / ops.maximum(step, warmup))


@choice("exponential")
class Exponential(Schedule):
    """Constant at first, then exponential decay.

    Args:
        start_step: Step at which the decay begins.
        decay_steps: Steps of one decay by the rate.
        rate: Factor on the learning rate per decay_steps.
    """

    def __init__(
        self,
        warmup_steps: Count = 0,
        start_step: Count = 5000,
        decay_steps: Positive = 1000,
        rate: DecayRate = 0.5,
        **common: Any,
    ):
        super().__init__(warmup_steps, **common)
        checked_arguments(locals())
        self.settings = {"start_step": start_step, "decay_steps": decay_steps, "rate": rate}

    def decay(self, step: Any) -> Any:
        steps = ops.maximum(0.0, step - float(self.settings["start_step"]))
        return ops.power(float(self.settings["rate"]), steps / float(self.settings["decay_steps"]))


@choice("cosine")
class Cosine(Schedule):
    """Half a cosine (Loshchilov and Hutter 2017).

    Loshchilov and Hutter 2017, "SGDR: Stochastic Gradient Descent with Warm Restarts", §3: from
    the peak to ``min_learning_rate``; then the rate is constant.

    Args:
        steps: Step of the minimum; null: training.max_steps.
        min_learning_rate: Final learning rate.

    Raises:
        ValueError: ``steps`` is None.
    """

    def __init__(
        self,
        warmup_steps: Count = 0,
        steps: Positive | None = None,
        min_learning_rate: NonNegative = 0.0,
        **common: Any,
    ):
        super().__init__(warmup_steps, **common)
        if steps is None:
            raise ValueError("The cosine schedule needs steps, or training.max_steps.")
        checked_arguments(locals())
        self.settings = {"steps": steps, "min_learning_rate": min_learning_rate}

    def decay(self, step: Any) -> Any:
        span = max(float(self.settings["steps"] - self.warmup_steps), 1.0)
        progress = ops.clip((step - float(self.warmup_steps)) / span, 0.0, 1.0)
        min_factor = self.settings["min_learning_rate"] / self.peak
        return min_factor + (1.0 - min_factor) * 0.5 * (1.0 + ops.cos(progress * math.pi))


SCHEDULES: dict[str, type[Schedule]] = classes_of_module(__file__, __name__)


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
        max_steps: the last step of the training, the default end of a schedule with ``steps``.

    Raises:
        ValueError: the type is unknown, or a cosine has no end.
    """
    options = dict(settings)
    schedule_class = by_name("schedule", SCHEDULES, options["type"])
    if "steps" in inspect.signature(schedule_class).parameters:
        options["steps"] = options.get("steps") or max_steps
    return spec("schedule", SCHEDULES, options, peak=learning_rate, accumulate=accumulate)
