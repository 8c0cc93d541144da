"""Trainings that cannot work, found before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from regard.models.metrics import METRICS, metrics_for, missing_tokenizer_package
from regard.models.settings.base import Path, Problem
from regard.models.settings.training import (
    CosineScheduleConfig,
    ExponentialScheduleConfig,
    NoamScheduleConfig,
    PlateauScheduleConfig,
    TrainingConfig,
)
from regard.pipeline.config.config import Config
from regard.pipeline.config.errors import show, suggest

_MIN_PEAK = 1e-6  # lower rates train nothing


def validate_training(config: Config) -> Iterator[Problem]:
    """Xield conflicts within ``training``, each at the key that has to change."""
    training = config.training
    yield from _limits(training)
    yield from _schedule(training)
    if message := missing_tokenizer_package(training.validation_tokenize):
        yield Problem(("training", "validation_tokenize"), message)
    stop = training.early_stopping
    if stop is not None:
        yield from validate_metric(stop.metric, config, ("training", "early_stopping", "metric"))


def validate_metric(name: str, config: Config, path: Path) -> Iterator[Problem]:
    """Xield why a metric cannot be computed in evaluations during training."""
    fitting = metrics_for(config.description.output_kind)
    # During training only outputs and references of a row are available.
    choices = ["loss", *(metric for metric in fitting if not METRICS[metric].needs_columns)]
    if name not in choices:
        message = f"{show(name)} is not a choice{suggest(name, choices)}"
        if name in fitting:
            message = f"{name} is known only of the test split; use {' or '.join(choices)}"
        yield Problem(path, message)


def _limits(training: TrainingConfig) -> Iterator[Problem]:
    min_tokens = 2 * training.max_length
    if training.batch_tokens < min_tokens:
        message = (
            f"{training.batch_tokens} does not hold one row of max_length: {training.max_length} "
            f"on both sides; use at least {min_tokens}, or a lower max_length"
        )
        yield Problem(("training", "batch_tokens"), message)
    limits = (
        training.max_epochs,
        training.max_steps,
        training.max_minutes,
        training.early_stopping,
    )
    if all(limit is None for limit in limits):
        message = (
            "training would never end; set max_epochs, max_steps, max_minutes or early_stopping"
        )
        yield Problem(("training", "max_epochs"), message)


def _ended_cosine(training: TrainingConfig, schedule: CosineScheduleConfig) -> Iterator[Problem]:
    """Check that the next training can continue the cosine schedule."""
    start, max_steps = training.warm_start, training.max_steps
    if not (start and start.optimizer) or schedule.min_learning_rate:
        return
    if schedule.steps is None or (max_steps is not None and schedule.steps <= max_steps):
        message = (
            "the next training would continue after the end of this cosine, with a rate of 0; "
            "use false, another schedule, or schedule.steps for all trainings together"
        )
        yield Problem(("training", "warm_start", "optimizer"), message)


def _schedule(training: TrainingConfig) -> Iterator[Problem]:
    schedule, path = training.schedule, ("training", "schedule")
    if isinstance(schedule, CosineScheduleConfig):
        end = schedule.steps or training.max_steps
        if end is None:
            message = "a cosine has to know its end; set steps, or training.max_steps"
            yield Problem((*path, "steps"), message)
        elif end <= schedule.warmup_steps:
            message = f"the warm-up would still rise at the end of the schedule, step {end}; use "
            yield Problem((*path, "warmup_steps"), f"{message}less than {end}, or more steps")
        yield from _ended_cosine(training, schedule)
    if (
        isinstance(schedule, ExponentialScheduleConfig)
        and schedule.start_step < schedule.warmup_steps
    ):
        message = (
            f"the rate would fall from step {schedule.start_step} on, while it still rises until "
            f"step {schedule.warmup_steps}; use {schedule.warmup_steps} or more"
        )
        yield Problem((*path, "start_step"), message)
    if isinstance(schedule, NoamScheduleConfig):
        peak = training.learning_rate * (schedule.model_dim * schedule.warmup_steps) ** -0.5
        if peak < _MIN_PEAK:
            message = (
                f"with noam this is only a factor, and the rate would never be more than {peak:.1g}"
                "; use about 1.0"
            )
            yield Problem(("training", "learning_rate"), message)
    minimum = getattr(schedule, "min_learning_rate", 0.0)
    if minimum > training.learning_rate:
        message = f"{minimum:g} is more than learning_rate: {training.learning_rate:g}; use less"
        yield Problem((*path, "min_learning_rate"), message)
    stop = training.early_stopping
    if isinstance(schedule, PlateauScheduleConfig) and stop and stop.patience <= schedule.patience:
        message = (
            f"early_stopping.patience: {stop.patience} ends the training before the rate falls; "
            f"use less than {stop.patience}, or a greater early_stopping.patience"
        )
        yield Problem((*path, "patience"), message)
