"""The optimizer that the YAML's section ``training`` describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from components.trainer.adam import Adam, AdamW
from models.schedules import schedule

# What decay would only harm: offsets and the scales of normalisations.
_NOT_DECAYED = ["bias", "gamma", "beta"]


def compile_model(model: keras.Model, training: Mapping[str, Any]) -> None:
    """Gives the model its optimizer: Adam, or AdamW where there is weight decay.

    Kingma & Ba 2015; Loshchilov & Hutter 2019. With ``accumulate`` the weights change once in so
    many batches, by the mean of their gradients, whose norm is what ``clip_norm`` bounds.
    """
    accumulate = training["accumulate"]
    options = {
        "learning_rate": schedule(
            training["learning_rate"], training["schedule"], accumulate, training["max_steps"]
        ),
        "beta_1": training["beta_1"],
        "beta_2": training["beta_2"],
        "epsilon": training["epsilon"],
        "global_clipnorm": training["clip_norm"],
        "gradient_accumulation_steps": accumulate if accumulate > 1 else None,
    }
    if training["weight_decay"]:
        optimizer = AdamW(weight_decay=training["weight_decay"], **options)
        optimizer.exclude_from_weight_decay(var_names=_NOT_DECAYED)
    else:
        optimizer = Adam(**options)
    model.compile(optimizer=optimizer, jit_compile=training["jit_compile"])
    model.optimizer.build(model.trainable_variables)


def moments_of(optimizer: Any) -> list[Any]:
    """Adam's first and second moments of all weights, as variables."""
    inner = _inner(optimizer)
    return [*inner._momentums, *inner._velocities]


def learning(optimizer: Any) -> list[Any]:
    """The weights that the moments are of: the first ones in this order, the second ones too."""
    return list(_inner(optimizer)._trainable_variables)


def rate_after(optimizer: Any, updates: int) -> float:
    """The learning rate of the next update, when so many have been made."""
    return float(_inner(optimizer)._learning_rate(updates * _batches(optimizer)))


def still_rises(optimizer: Any, updates: int) -> bool:
    """Whether the warm-up of the schedule goes on after so many updates."""
    return bool(updates < _inner(optimizer)._learning_rate.warmup_steps)


def go_on(optimizer: Any, updates: int, moments: Sequence[Any]) -> None:
    """Gives the optimizer the moments of another training, and its place in the schedule.

    Args:
        optimizer: built, for weights of the same shapes.
        updates: how many that training had made.
        moments: the values of ``moments_of``.
    """
    for variable, value in zip(moments_of(optimizer), moments, strict=True):
        variable.assign(value)
    _inner(optimizer)._iterations.assign(updates * _batches(optimizer))


def _batches(optimizer: Any) -> int:
    """The batches of an update, which Keras counts in."""
    return int(_inner(optimizer).gradient_accumulation_steps or 1)


def _inner(optimizer: Any) -> Any:
    """The optimizer itself; what scales the loss for float16 is wrapped around it."""
    return getattr(optimizer, "inner_optimizer", optimizer)
