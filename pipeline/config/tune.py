"""The section ``tune``: which keys `regard tune` searches, and how."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from models.settings.base import Listed, Positive, Section
from pipeline.config.training import Rate

TRIALS = 20  # of random and bayesian search
FACTOR = 3  # of hyperband
LAST_SEED = 2**32 - 2  # the oracles take one more, and NumPy 32 bits


class Range(Section):
    """The values that a key may take: one of linear, log and choice."""

    linear: Listed[float] | None = Field(
        default=None, description="[LOW, HIGH], each value between them as likely as another."
    )
    log: Listed[float] | None = Field(
        default=None,
        description="[LOW, HIGH], each power of ten between them as likely as another.",
    )
    choice: Listed[Any] | None = Field(
        default=None, description="A list of values of any kind, whole sections too."
    )
    step: Rate | None = Field(
        default=None,
        description="Between two values of linear; the factor between two of log. null: any value.",
    )


class Tune(Section):
    """What `regard tune` searches; no other command reads it."""

    over: Annotated[dict[str, Range], Field(min_length=1)] = Field(
        description="The keys, of the sections model and training, each with its range.",
        examples=[{"training.learning_rate": {"log": [0.0001, 0.01]}}],
    )
    algorithm: Literal["hyperband", "bayesian", "random"] = Field(
        default="hyperband",
        description="What is tried next. hyperband: many short trainings, of which the best go on "
        "(Li 2018); bayesian: what a Gaussian process expects most of; random: anything.",
    )
    objective: str | None = Field(
        default=None,
        description="What trials are judged by: the loss of the eval split, or a metric of the "
        "task, such as bleu, of answers that are really decoded; null: early_stop.metric.",
    )
    trials: Positive | None = Field(
        default=None,
        description=f"Trials in all; null: {TRIALS}. Hyperband's follow from epochs and factor.",
    )
    epochs: Positive | None = Field(
        default=None,
        description="Epochs of a trial, with hyperband of the longest; null: training.max_epochs.",
    )
    minutes: Rate | None = Field(
        default=None,
        description="Minutes of training of a trial at most; null: training.max_minutes.",
    )
    factor: Annotated[int, Field(ge=2)] | None = Field(
        default=None,
        description="Hyperband: one in so many goes on, for so many times the epochs; "
        f"null: {FACTOR}.",
    )
    iterations: Positive | None = Field(
        default=None, description="Hyperband: how often it is done over; null: once."
    )
    parallel: Positive = Field(
        default=1, description="Trials at once, each a process; they divide the cores."
    )
    failures: Positive = Field(
        default=3, description="Trials that may fail one after the other before the search ends."
    )
    seed: Annotated[int, Field(ge=0, le=LAST_SEED)] = Field(
        default=17, description="Seed of what is drawn, not of the trainings."
    )
