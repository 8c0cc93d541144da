"""Learning rates over the steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from models.serialization import by_name, register


class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """A linear warm-up to ``peak``, then one of several ways down: a subclass each.

    A step is one update of the weights. Keras asks with the number of batches so far, which are
    ``accumulate`` times as many.

    Args:
        peak: the learning rate at the end of the warm-up.
        warmup_steps: the steps until then; 0 starts at the peak.
        accumulate: the batches of one step.
        **options: those of the subclass.
    """

    def __init__(self, peak: float, warmup_steps: int = 0, accumulate: int = 1, **options: Any):
        self.peak, self.warmup_steps, self.accumulate = peak, warmup_steps, accumulate
        self.options = options

    def __call__(self, step: Any) -> Any:
        done = ops.floor(ops.cast(step, "float32") / float(self.accumulate))
        return self.rate(done + 1.0)

    def rate(self, step: Any) -> Any:
        """The learning rate of a step, counted from 1; float32."""
        warm = ops.minimum(1.0, step / max(float(self.warmup_steps), 1.0))
        return self.peak * warm * self.fall(step)

    def fall(self, step: Any) -> Any:
        """What is left of the peak; 1 until the fall begins."""
        raise TypeError(f"{type(self).__name__} does not say how it falls.")

    def get_config(self) -> dict[str, Any]:
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "accumulate": self.accumulate,
            **self.options,
        }


@register
class Constant(Schedule):
    """Stays at the peak."""

    def fall(self, step: Any) -> Any:
        return 1.0


@register
class InverseSqrt(Schedule):
    """peak · √(warmup / step) (Vaswani et al. 2017, §5.3, with a peak of one's own)."""

    def fall(self, step: Any) -> Any:
        warm = max(float(self.warmup_steps), 1.0)
        return ops.sqrt(warm / ops.maximum(step, warm))


@register
class Noam(InverseSqrt):
    """peak · depth^-½ · min(step^-½, step · warmup^-1½) (Vaswani et al. 2017, §5.3).

    ``peak`` is only a factor here; the highest rate is peak / √(depth · warmup).

    Args:
        depth: the depth of the model.
    """

    def __init__(self, peak: float, warmup_steps: int = 4000, depth: int = 512, **kwargs: Any):
        super().__init__(peak, warmup_steps, depth=depth, **kwargs)
        self.depth = depth

    def rate(self, step: Any) -> Any:
        return super().rate(step) * (self.depth * max(self.warmup_steps, 1)) ** -0.5


@register
class Exponential(Schedule):
    """Times ``rate`` in every ``decay_steps``, from ``start_step`` on."""

    def fall(self, step: Any) -> Any:
        beyond = ops.maximum(0.0, step - float(self.options["start_step"]))
        return ops.power(float(self.options["rate"]), beyond / float(self.options["decay_steps"]))


@register
class Cosine(Schedule):
    """Half a cosine from the peak to ``minimum`` at ``steps`` (Loshchilov & Hutter 2017, §3).

    Args:
        steps: where the minimum is reached; the rate stays there.
        minimum: the learning rate at the end.
    """

    def __init__(
        self,
        peak: float,
        warmup_steps: int = 0,
        steps: int = 1,
        minimum: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(peak, warmup_steps, steps=steps, minimum=minimum, **kwargs)
        self.steps, self.least = steps, minimum / peak

    def fall(self, step: Any) -> Any:
        span = max(float(self.steps - self.warmup_steps), 1.0)
        part = ops.clip((step - float(self.warmup_steps)) / span, 0.0, 1.0)
        return self.least + (1.0 - self.least) * 0.5 * (1.0 + ops.cos(part * 3.141592653589793))


@register
class Plateau(Schedule):
    """Falls by a factor whenever the evaluations no longer get better.

    The trainer counts the evaluations and calls ``cut``; ``scale`` is a variable, so that a
    compiled training step sees it change.

    Args:
        factor: on the learning rate at each cut.
        minimum: the learning rate goes no lower.
        scale: what earlier cuts have left of the peak.
    """

    def __init__(
        self,
        peak: float,
        warmup_steps: int = 0,
        factor: float = 0.5,
        minimum: float = 0.0,
        scale: float = 1.0,
        **kwargs: Any,
    ):
        super().__init__(peak, warmup_steps, factor=factor, minimum=minimum, **kwargs)
        self.factor, self.minimum = factor, minimum
        self.scale = keras.Variable(scale, trainable=False, dtype="float32", name="rate_scale")

    def fall(self, step: Any) -> Any:
        return ops.convert_to_tensor(self.scale)

    def cut(self) -> None:
        """Lowers the rate by the factor, down to the minimum."""
        least = min(self.minimum / self.peak, 1.0)
        self.scale.assign(max(float(self.scale) * self.factor, least))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "scale": float(self.scale)}


SCHEDULES = {
    "constant": Constant,
    "inverse_sqrt": InverseSqrt,
    "noam": Noam,
    "exponential": Exponential,
    "cosine": Cosine,
    "plateau": Plateau,
}

# What the trainer reads of a schedule's settings, and the schedule itself does not.
_OF_THE_TRAINER = ("type", "patience")


def schedule(
    learning_rate: float,
    settings: Mapping[str, Any],
    accumulate: int = 1,
    max_steps: int | None = None,
) -> Schedule:
    """The schedule that the YAML's ``training.schedule`` describes.

    Args:
        learning_rate: its peak.
        settings: ``type`` and the options.
        accumulate: the batches of one step.
        max_steps: where the training ends, for a cosine that does not say.

    Raises:
        ValueError: an unknown type, or a cosine without an end.
    """
    make = by_name("schedule", SCHEDULES, settings["type"])
    options = {name: value for name, value in settings.items() if name not in _OF_THE_TRAINER}
    if make is Cosine:
        options["steps"] = options.get("steps") or max_steps
        if not options["steps"]:
            raise ValueError("The cosine schedule needs steps, or training.max_steps.")
    return make(learning_rate, accumulate=accumulate, **options)
