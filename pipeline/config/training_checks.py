"""Trainings that cannot work, found before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from models.metrics import METRICS, judging, unusable
from models.settings.base import Path, Problem
from pipeline.config.errors import show, suggest
from pipeline.config.sections import Config
from pipeline.config.training import (
    CosineSchedule,
    ExponentialSchedule,
    NoamSchedule,
    PlateauSchedule,
    Training,
)

_LEAST_PEAK = 1e-6  # below it nothing is learnt


def impossible_training(config: Config) -> Iterator[Problem]:
    """Yields what of ``training`` cannot work together, at the key to be changed."""
    training = config.training
    yield from _limits(training)
    yield from _schedule(training)
    if message := unusable(training.validation_tokenize):
        yield Problem(("training", "validation_tokenize"), message)
    stop = training.early_stop
    if stop is not None:
        yield from unmeasured(stop.metric, config, ("training", "early_stop", "metric"))


def unmeasured(name: str, config: Config, path: Path) -> Iterator[Problem]:
    """Yields why a measure at a key is none that evaluations while training have."""
    fitting = judging(config.description.answers)
    # While training there are answers and references, and nothing else of a row.
    choices = ["loss", *(metric for metric in fitting if not METRICS[metric].beside)]
    if name not in choices:
        message = f"{show(name)} is not a choice{suggest(name, choices)}"
        if name in fitting:
            message = f"{name} is known only of the test split; use {' or '.join(choices)}"
        yield Problem(path, message)


def _limits(training: Training) -> Iterator[Problem]:
    least = 2 * training.max_length
    if training.batch_tokens < least:
        message = (
            f"{training.batch_tokens} does not hold one row of max_length: {training.max_length} "
            f"on both sides; use at least {least}, or a lower max_length"
        )
        yield Problem(("training", "batch_tokens"), message)
    limits = (training.max_epochs, training.max_steps, training.max_minutes, training.early_stop)
    if all(limit is None for limit in limits):
        message = "training would never end; set max_epochs, max_steps, max_minutes or early_stop"
        yield Problem(("training", "max_epochs"), message)


def _ended(training: Training, schedule: CosineSchedule) -> Iterator[Problem]:
    """A cosine that ends within one training leaves the next one nothing to go on with."""
    start, most = training.warm_start, training.max_steps
    if not (start and start.optimizer) or schedule.minimum:
        return
    if schedule.steps is None or (most is not None and schedule.steps <= most):
        message = (
            "the next training would go on where this cosine has ended, with a learning rate of 0; "
            "use false, another schedule, or schedule.steps for all trainings together"
        )
        yield Problem(("training", "warm_start", "optimizer"), message)


def _schedule(training: Training) -> Iterator[Problem]:
    schedule, path = training.schedule, ("training", "schedule")
    if isinstance(schedule, CosineSchedule):
        end = schedule.steps or training.max_steps
        if end is None:
            message = "a cosine has to know its end; set steps, or training.max_steps"
            yield Problem((*path, "steps"), message)
        elif end <= schedule.warmup_steps:
            message = f"the warm-up would still rise at the end of the schedule, step {end}; use "
            yield Problem((*path, "warmup_steps"), f"{message}less than {end}, or more steps")
        yield from _ended(training, schedule)
    if isinstance(schedule, ExponentialSchedule) and schedule.start_step < schedule.warmup_steps:
        message = (
            f"the rate would fall from step {schedule.start_step} on, while it still rises until "
            f"step {schedule.warmup_steps}; use {schedule.warmup_steps} or more"
        )
        yield Problem((*path, "start_step"), message)
    if isinstance(schedule, NoamSchedule):
        peak = training.learning_rate * (schedule.depth * schedule.warmup_steps) ** -0.5
        if peak < _LEAST_PEAK:
            message = (
                f"with noam this is only a factor, and the rate would never be more than {peak:.1g}"
                "; use about 1.0"
            )
            yield Problem(("training", "learning_rate"), message)
    minimum = getattr(schedule, "minimum", 0.0)
    if minimum > training.learning_rate:
        message = f"{minimum:g} is more than learning_rate: {training.learning_rate:g}; use less"
        yield Problem((*path, "minimum"), message)
    stop = training.early_stop
    if isinstance(schedule, PlateauSchedule) and stop and stop.patience <= schedule.patience:
        message = (
            f"early_stop.patience: {stop.patience} ends the training before the rate has fallen; "
            f"use less than {stop.patience}, or a greater early_stop.patience"
        )
        yield Problem((*path, "patience"), message)
