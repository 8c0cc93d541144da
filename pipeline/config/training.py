"""The section ``training``: how the model learns, and when it stops."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, Tag, create_model

from models.settings.base import Count, Positive, Section, absolute, by_type

# The model to start from that is not named but found.
PRODUCTION = "production"
Tokenize = Literal["13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "none"]


Rate = Annotated[float, Field(gt=0.0)]
Least = Annotated[float, Field(ge=0.0)]
Momentum = Annotated[float, Field(ge=0.0, lt=1.0)]


class _Warmed(Section):
    """Rises over the warm-up first."""

    warmup_steps: Count = Field(
        default=0, description="Steps over which the learning rate rises from 0; 0: none."
    )


class ConstantSchedule(_Warmed):
    """The learning rate stays as it is, after a warm-up."""

    type: Literal["constant"] = Field(default="constant", description="The schedule.")


class InverseSqrtSchedule(Section):
    """Rises over the warm-up, then falls with the square root of the step."""

    type: Literal["inverse_sqrt"] = Field(default="inverse_sqrt", description="The schedule.")
    warmup_steps: Positive = Field(
        default=4000, description="Steps over which the learning rate rises from 0 to its value."
    )


class NoamSchedule(Section):
    """As Vaswani 2017 gives it: inverse_sqrt with a peak of learning_rate / √(depth · warmup)."""

    type: Literal["noam"] = Field(default="noam", description="The schedule.")
    warmup_steps: Positive = Field(
        default=4000, description="Steps over which the learning rate rises from 0 to its peak."
    )
    depth: Positive = Field(
        default=512,
        description="Depth of the model. learning_rate is only a factor here, such as 1.0.",
    )


class ExponentialSchedule(_Warmed):
    """Stays, then falls by a factor for every so many steps."""

    type: Literal["exponential"] = Field(default="exponential", description="The schedule.")
    start_step: Count = Field(
        default=5000, description="Steps before the learning rate begins to fall."
    )
    decay_steps: Positive = Field(default=1000, description="Steps in which it falls by the rate.")
    rate: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        default=0.5, description="Factor on the learning rate for each decay_steps."
    )


class CosineSchedule(_Warmed):
    """Falls along half a cosine (Loshchilov and Hutter 2017)."""

    type: Literal["cosine"] = Field(default="cosine", description="The schedule.")
    steps: Positive | None = Field(
        default=None, description="Where the minimum is reached; null: at training.max_steps."
    )
    minimum: Least = Field(default=0.0, description="The learning rate at the end.")


class PlateauSchedule(_Warmed):
    """Falls by a factor when the evaluations no longer get better."""

    type: Literal["plateau"] = Field(default="plateau", description="The schedule.")
    factor: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        default=0.5, description="Factor on the learning rate each time."
    )
    patience: Positive = Field(
        default=2,
        description="Evaluations without a better one, by early_stop.metric and min_delta.",
    )
    minimum: Least = Field(default=0.0, description="The learning rate goes no lower.")


Schedule = Annotated[
    Annotated[ConstantSchedule, Tag("constant")]
    | Annotated[InverseSqrtSchedule, Tag("inverse_sqrt")]
    | Annotated[NoamSchedule, Tag("noam")]
    | Annotated[ExponentialSchedule, Tag("exponential")]
    | Annotated[CosineSchedule, Tag("cosine")]
    | Annotated[PlateauSchedule, Tag("plateau")],
    by_type("constant"),
]


class EarlyStop(Section):
    """Stops when the eval split is no longer done better."""

    patience: Positive = Field(default=3, description="Evaluations without a better one.")
    min_delta: Least = Field(
        default=0.0,
        description="By how much one must be better, in nats a piece or the metric's own unit.",
    )
    metric: str = Field(
        default="loss",
        description="What evaluations are compared by, here and wherever the best one counts: the "
        "loss, or a metric of the task, such as bleu, of answers that are really decoded.",
    )


class MovingAverage(Section):
    """A moving average of the weights, which is evaluated and exported in their place."""

    decay: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        default=0.999, description="What is kept of the average at each step."
    )


class CheckpointAverage(Section):
    """The mean of the weights of several evaluations, which is exported (Vaswani 2017)."""

    checkpoints: Annotated[int, Field(ge=2)] = Field(
        default=5, description="How many evaluations' weights are averaged."
    )
    of: Literal["last", "best"] = Field(
        default="last", description="Which: the last ones, or the best by early_stop.metric."
    )


class Reinforce(Section):
    """How hard attention with training: reinforce is rewarded (Xu 2015, section 4.1)."""

    baseline_decay: Momentum = Field(
        default=0.9, description="What is kept of the moving mean of the reward at each step."
    )
    reward_weight: Least = Field(default=1.0, description="Weight of the reward in the loss.")
    entropy_weight: Least = Field(
        default=0.002, description="Weight of the entropy of where to look."
    )


class Penalties(Section):
    """What is held against the way a model looks at its source; 0: nothing."""

    coverage: Least = Field(
        default=0.0,
        description="Weight of looking again where it has looked before (See 2017, section 2.3).",
    )
    doubly_stochastic: Least = Field(
        default=0.0,
        description="Weight of not looking at everything just once (Xu 2015, section 4.2.1).",
    )

    def chosen(self) -> dict[str, float]:
        """Those that weigh anything."""
        return {name: weight for name, weight in self.model_dump().items() if weight}


class _Start(Section):
    def resolved(self, base: Path) -> Self:
        """A copy whose path is absolute; a name of the registry stays."""
        given = getattr(self, "from")
        return self.model_copy(update={"from": absolute(base, given)}) if "/" in given else self


# Not the body of a class, since ``from`` can be a key of the YAML but no name in Python.
_START: dict[str, Any] = {
    "from": (
        Annotated[str, Field(min_length=1)],
        Field(
            default=PRODUCTION,
            description="Which: production, the newest version of this pipeline's own model "
            "(random weights while there is none); NAME or NAME@VERSION of the registry; or the "
            "folder of a SavedModel, with a / in it. The network must be the same; pieces that "
            "its vocabulary has not start from those that it cuts them into.",
        ),
    ),
    "optimizer": (
        bool,
        Field(
            default=False,
            description="Whether the optimizer goes on with its moments and its place in the "
            "schedule, and keeps them beside the model for the next training: twice the weights' "
            "size. It begins anew where the vocabulary has other pieces.",
        ),
    ),
}
_ABOUT = "Starts from the weights of a model that has been trained and exported before."
WarmStart = create_model("WarmStart", __base__=_Start, __doc__=_ABOUT, **_START)


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
    max_minutes: Rate | None = Field(
        default=None, description="Minutes of training at most; null: no limit."
    )
    learning_rate: Rate = Field(default=0.001, description="Adam's learning rate, at its highest.")
    beta_1: Momentum = Field(default=0.9, description="Adam's memory of the gradient.")
    beta_2: Momentum = Field(default=0.98, description="Adam's memory of its square.")
    epsilon: Rate = Field(default=1e-9, description="Adam's guard against a division by 0.")
    weight_decay: Least = Field(
        default=0.0,
        description="AdamW: the share of each weight that goes at each step, times the learning "
        "rate; offsets and normalisations keep theirs. 0: none.",
    )
    schedule: Schedule = Field(
        default=ConstantSchedule(), description="How the learning rate changes over the steps."
    )
    label_smoothing: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        default=0.1, description="Probability spread over all pieces instead of the right one."
    )
    clip_norm: Rate | None = Field(
        default=1.0, description="Largest norm of all gradients together; null: no limit."
    )
    accumulate: Positive = Field(
        default=1,
        description="Batches whose gradients make one step; steps are what all keys count in.",
    )
    evaluate_every: Positive | None = Field(
        default=None, description="Steps between two evaluations; null: after each epoch."
    )
    early_stop: EarlyStop | None = Field(
        default=EarlyStop(),
        description="When to stop because the eval split is no longer done better; null: never.",
    )
    validation_rows: Positive | None = Field(
        default=None,
        description="Rows of the eval split that are answered at each evaluation, for the task's "
        "first metric (BLEU for text); null: none, or all where early_stop.metric is a metric.",
    )
    validation_tokenize: Tokenize = Field(
        default="13a", description="sacreBLEU's tokenization for BLEU then; zh for Chinese targets."
    )
    ema: MovingAverage | None = Field(
        default=None,
        description="A moving average of the weights, to be evaluated and exported; null: none.",
    )
    average: CheckpointAverage | None = Field(
        default=None,
        description="Export the mean of several evaluations' weights; null: the best one's.",
    )
    reinforce: Reinforce = Field(
        default=Reinforce(), description="For hard attention with training: reinforce."
    )
    penalties: Penalties = Field(
        default=Penalties(), description="What is held against the way a model looks."
    )
    checkpoint_seconds: Positive = Field(
        default=60, description="Seconds between checkpoints: what a killed run loses at most."
    )
    devices: Literal["one", "all", "workers"] = Field(
        default="one",
        description="What trains: one device; all GPUs of this machine; or several workers, each "
        "with all its GPUs, as TF_CONFIG names them (the others are started with `regard worker`). "
        "batch_tokens is the budget of all together.",
    )
    precision: Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"] = Field(
        default="auto",
        description="Number format of the computation; weights are always float32. auto: what the "
        "GPU is fast in (mixed_bfloat16 from Ampere on, mixed_float16 from Volta on), float32 on a "
        "processor.",
    )
    jit_compile: bool = Field(
        default=False,
        description="Whether XLA compiles the steps, once for each length of batches; not for "
        "recurrent layers.",
    )
    warm_start: WarmStart | None = Field(  # type: ignore[valid-type]
        default=None, description="A model whose weights are the first ones; null: random ones."
    )
    seed: Annotated[int, Field(ge=0, lt=2**32)] = Field(
        default=17, description="Seed of the weights, of dropout and of shuffling."
    )
    deterministic: bool = Field(
        default=False,
        description="Whether a training gives the same weights, bit for bit, wherever its "
        "operations can; slower.",
    )

    def resolved(self, base: Path) -> Self:
        """A copy whose path is absolute."""
        start = self.warm_start
        return self.model_copy(update={"warm_start": start and start.resolved(base)})
