"""The section ``training``: how the model learns, and when it stops."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag

from pipeline.config.base import Count, Positive, Section, by_type


class ConstantSchedule(Section):
    """The learning rate stays as it is, after a warm-up."""

    type: Literal["constant"] = Field(default="constant", description="The schedule.")
    warmup_steps: Count = Field(
        default=0, description="Steps over which the learning rate rises from 0; 0: none."
    )


class InverseSqrtSchedule(Section):
    """Rises over the warm-up, then falls with the square root of the step."""

    type: Literal["inverse_sqrt"] = Field(default="inverse_sqrt", description="The schedule.")
    warmup_steps: Positive = Field(
        default=4000, description="Steps over which the learning rate rises from 0 to its value."
    )


class ExponentialSchedule(Section):
    """Stays, then falls by a factor for every so many steps."""

    type: Literal["exponential"] = Field(default="exponential", description="The schedule.")
    start_step: Count = Field(
        default=5000, description="Steps before the learning rate begins to fall."
    )
    decay_steps: Positive = Field(default=1000, description="Steps in which it falls by the rate.")
    rate: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        default=0.5, description="Factor on the learning rate for each decay_steps."
    )


Schedule = Annotated[
    Annotated[ConstantSchedule, Tag("constant")]
    | Annotated[InverseSqrtSchedule, Tag("inverse_sqrt")]
    | Annotated[ExponentialSchedule, Tag("exponential")],
    by_type("constant"),
]


class EarlyStop(Section):
    """Stops when the loss on the eval split no longer falls."""

    patience: Positive = Field(default=3, description="Evaluations without a better loss.")
    min_delta: Annotated[float, Field(ge=0.0)] = Field(
        default=0.0, description="By how much a loss must be lower to be better."
    )


class Training(Section):
    """How the model learns; what comes first of max_epochs, max_steps, max_minutes ends it."""

    batch_tokens: Positive = Field(
        default=4096,
        description="Pieces of one batch at most, source and target together, padding included.",
    )
    max_length: Positive = Field(
        default=100,
        description="Rows with more pieces on a side are left out of training, and counted.",
    )
    max_epochs: Positive | None = Field(
        default=20, description="Passes over the train split at most; null: no limit."
    )
    max_steps: Positive | None = Field(default=None, description="Steps at most; null: no limit.")
    max_minutes: Annotated[float, Field(gt=0.0)] | None = Field(
        default=None, description="Minutes of training at most; null: no limit."
    )
    learning_rate: Annotated[float, Field(gt=0.0)] = Field(
        default=0.001, description="Adam's learning rate, at its highest."
    )
    schedule: Schedule = Field(
        default=ConstantSchedule(), description="How the learning rate changes over the steps."
    )
    label_smoothing: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        default=0.1, description="Probability spread over all pieces instead of the right one."
    )
    clip_norm: Annotated[float, Field(gt=0.0)] | None = Field(
        default=1.0, description="Largest norm of all gradients together; null: no limit."
    )
    early_stop: EarlyStop | None = Field(
        default=EarlyStop(),
        description="When to stop because the loss on the eval split no longer falls; null: never.",
    )
    checkpoint_seconds: Positive = Field(
        default=60, description="Seconds between checkpoints: what a killed run loses at most."
    )
    precision: Literal["float32", "mixed_bfloat16", "mixed_float16"] = Field(
        default="float32",
        description="Number format of the computation; weights are always float32.",
    )
    seed: Count = Field(default=17, description="Seed of the weights, of dropout and of shuffling.")
