"""How long a training is at most, and the settings that take effect only in a longer one."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from typing_extensions import Self

from regard.models.settings.training import (
    EarlyStoppingConfig,
    TrainingConfig,
)

# Buckets of lengths, each of which may have an incomplete batch.
_MAX_BUCKETS = 50


@dataclass(frozen=True)
class TrainingLength:
    """The length of a training.

    Attributes:
        steps: the maximum number of steps; None if only time or evaluations limit it.
        evaluations: the maximum number of evaluations, that at the end included; None if it is not
            known.
        is_exact: whether the training has this length unless it stops early.
    """

    steps: int | None
    evaluations: int | None
    is_exact: bool

    @classmethod
    def of(cls, training: TrainingConfig, batches: int | None, is_exact: bool = True) -> Self:
        """Return the length that the limits give.

        Args:
            training: the section ``training``.
            batches: those of an epoch; None if they are not known.
            is_exact: whether the number of batches is exact, or an upper bound.
        """
        epochs = training.max_epochs
        by_epochs = None
        if epochs is not None and batches is not None:
            by_epochs = math.ceil(epochs * batches / training.gradient_accumulation_steps)
        limits = [steps for steps in (training.max_steps, by_epochs) if steps is not None]
        steps = min(limits, default=None)
        evaluations = epochs
        if training.evaluate_every:
            evaluations = None if steps is None else math.ceil(steps / training.evaluate_every)
        return cls(steps, evaluations, is_exact or steps == training.max_steps)


def length_notes(training: TrainingConfig, rows: int) -> Iterator[str]:
    """Yield what ``unused_settings`` finds before the lengths of the rows are known.

    Args:
        training: the section ``training``.
        rows: the rows of the train split, which give an upper bound of the batches of an epoch.
    """
    tokens = 0 if training.batch_tokens == "auto" else training.batch_tokens
    rows_per_batch = max(1, tokens // (2 * training.max_length))
    batches = math.ceil(rows / rows_per_batch) + _MAX_BUCKETS
    yield from unused_settings(training, TrainingLength.of(training, batches, is_exact=False))


def unused_settings(training: TrainingConfig, length: TrainingLength) -> Iterator[str]:
    """Yield a sentence for each setting that takes no effect in a training of this length."""
    steps, evaluations = length.steps, length.evaluations
    if steps is not None:
        yield from _unused_in_steps(training, steps, length.is_exact)
    average, stop = training.checkpoint_averaging, training.early_stopping
    if average and evaluations is not None and evaluations < average.checkpoints:
        name = f"training.checkpoint_averaging.checkpoints: {average.checkpoints}"
        yield f"{name} is more than the evaluations of this training, at most {evaluations:,}"
    is_default = stop is None or stop.patience == EarlyStoppingConfig().patience
    if stop and not is_default and evaluations is not None and evaluations <= stop.patience:
        message = f"training.early_stopping.patience: {stop.patience} stops nothing: there are at "
        yield f"{message}most {evaluations:,} evaluations, of which the first counts as the best"
    seconds = training.checkpoint_seconds
    is_default = seconds == TrainingConfig.model_fields["checkpoint_seconds"].default
    if training.max_minutes and not is_default and seconds > 60 * training.max_minutes:
        message = f"training.checkpoint_seconds: {seconds:,} is more than training.max_minutes"
        yield f"{message}: a training that is interrupted within an epoch begins again"


def _unused_in_steps(training: TrainingConfig, steps: int, is_exact: bool) -> Iterator[str]:
    count = f"{'' if is_exact else 'at most '}{steps:,} steps"
    schedule, start = training.schedule, training.warm_start
    # With the optimizer of another training, its steps count as well.
    if not (start and start.optimizer):
        if text := warmup_warning(training, steps, count):
            yield text
        first_decay = getattr(schedule, "start_step", 0)
        if first_decay and steps <= first_decay:
            name = f"training.schedule.start_step: {first_decay:,}"
            yield f"{name} is after the {count} of this training: the learning rate does not decay"
    every = training.evaluate_every
    if every and every > steps:
        message = f"training.evaluate_every: {every:,} is more than the {count} of this training"
        yield f"{message}: the model is evaluated only at the end"


def warmup_warning(training: TrainingConfig, steps: int, count: str) -> str | None:
    """Return a sentence if a training is shorter than its warm-up.

    Args:
        training: the section ``training``.
        steps: the steps of the training.
        count: how the sentence calls them.
    """
    warmup = training.schedule.warmup_steps
    if steps >= warmup:
        return None
    name = f"training.schedule.warmup_steps: {warmup:,} is more than the {count} of this training"
    return f"{name}: the learning rate never exceeds {100 * steps / warmup:.3g}% of its peak"
