"""The section ``training``: how the model learns, and when it stops."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, Tag
from typing_extensions import Self

from regard.models.settings.base import (
    Count,
    NotInTrainingKey,
    Positive,
    Rate,
    Section,
    absolute,
    by_type,
)

# The value of ``warm_start.model`` for the newest version of the pipeline's own model.
PRODUCTION = "production"
BleuTokenizer = Literal["13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "none"]

PositiveFloat = Annotated[float, Field(gt=0.0)]
NonNegative = Annotated[float, Field(ge=0.0)]


class _WarmupScheduleConfig(Section):
    warmup_steps: Count = Field(
        default=0, description="Steps over which the learning rate rises from 0; 0: no warm-up."
    )


class ConstantScheduleConfig(_WarmupScheduleConfig):
    """Constant after a warm-up."""

    type: Literal["constant"] = Field(default="constant", description="Schedule type.")


class InverseSqrtScheduleConfig(Section):
    """Inverse square root of the step after a linear warm-up."""

    type: Literal["inverse_sqrt"] = Field(default="inverse_sqrt", description="Schedule type.")
    warmup_steps: Positive = Field(
        default=4000, description="Steps over which the learning rate rises from 0 to its peak."
    )


class NoamScheduleConfig(Section):
    """Inverse square root with peak learning_rate / √(model_dim · warmup) (Vaswani 2017)."""

    type: Literal["noam"] = Field(default="noam", description="Schedule type.")
    warmup_steps: Positive = Field(
        default=4000, description="Steps over which the learning rate rises from 0 to its peak."
    )
    model_dim: Positive = Field(
        default=512,
        description="Width of the model. learning_rate is only a factor here, for example 1.0.",
    )


class ExponentialScheduleConfig(_WarmupScheduleConfig):
    """Constant at first, then exponential decay."""

    type: Literal["exponential"] = Field(default="exponential", description="Schedule type.")
    start_step: Count = Field(default=5000, description="Step at which the decay begins.")
    decay_steps: Positive = Field(default=1000, description="Steps of one decay by the rate.")
    rate: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        default=0.5, description="Factor on the learning rate per decay_steps."
    )


class CosineScheduleConfig(_WarmupScheduleConfig):
    """Half a cosine (Loshchilov and Hutter 2017)."""

    type: Literal["cosine"] = Field(default="cosine", description="Schedule type.")
    steps: Positive | None = Field(
        default=None, description="Step at which the minimum is reached; null: training.max_steps."
    )
    min_learning_rate: NonNegative = Field(default=0.0, description="Final learning rate.")


class PlateauScheduleConfig(_WarmupScheduleConfig):
    """Reduces the learning rate when the evaluation metric stops improving."""

    type: Literal["plateau"] = Field(default="plateau", description="Schedule type.")
    factor: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        default=0.5, description="Factor on the learning rate."
    )
    patience: Positive = Field(
        default=2,
        description="Evaluations without improvement of early_stopping.metric before a reduction.",
    )
    min_learning_rate: NonNegative = Field(default=0.0, description="Minimum learning rate.")


LearningRateScheduleConfig = Annotated[
    Annotated[ConstantScheduleConfig, Tag("constant")]
    | Annotated[InverseSqrtScheduleConfig, Tag("inverse_sqrt")]
    | Annotated[NoamScheduleConfig, Tag("noam")]
    | Annotated[ExponentialScheduleConfig, Tag("exponential")]
    | Annotated[CosineScheduleConfig, Tag("cosine")]
    | Annotated[PlateauScheduleConfig, Tag("plateau")],
    by_type("constant"),
]


class EarlyStoppingConfig(Section):
    """Stops the training when the evaluation metric stops improving."""

    patience: Positive = Field(default=3, description="Evaluations without improvement.")
    min_delta: NonNegative = Field(
        default=0.0,
        description="Minimum improvement, in nats per token for the loss, else in the unit of the "
        "metric.",
    )
    metric: str = Field(
        default="loss",
        description="What evaluations are compared by, here and wherever the best one counts: the "
        "loss, or a metric of decoded outputs, for example bleu.",
    )


class MovingAverageConfig(Section):
    """Exponential moving average of the weights, which is evaluated and exported."""

    decay: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        default=0.999, description="Weight of the previous average at each step."
    )


class CheckpointAveragingConfig(Section):
    """Average of the weights of several evaluations, which is exported (Vaswani 2017)."""

    checkpoints: Annotated[int, Field(ge=2)] = Field(
        default=5, description="Number of evaluations to average."
    )
    of: Literal["last", "best"] = Field(
        default="last", description="The last evaluations, or the best by early_stopping.metric."
    )


class ReinforceConfig(Section):
    """REINFORCE, for hard attention with training: reinforce (Xu 2015, section 4.1)."""

    baseline_decay: Rate = Field(
        default=0.9, description="Decay of the moving average of the reward."
    )
    reward_weight: NonNegative = Field(default=1.0, description="Weight of the reward.")
    entropy_weight: NonNegative = Field(
        default=0.002, description="Weight of the entropy of the attention."
    )


class AttentionPenaltiesConfig(Section):
    """Penalties on the attention; 0: none."""

    coverage: NonNegative = Field(
        default=0.0,
        description="Weight of the penalty on repeated attention (See 2017, section 2.3).",
    )
    doubly_stochastic: NonNegative = Field(
        default=0.0,
        description="Weight of the penalty on source positions whose total attention is not 1 (Xu "
        "2015, section 4.2.1).",
    )

    def active(self) -> dict[str, float]:
        """Return the penalties with a weight above 0."""
        return {name: weight for name, weight in self if weight}


class WarmStartConfig(Section):
    """Starts from the weights of a model that has been trained and exported before."""

    model: Annotated[str, Field(min_length=1)] = Field(
        default=PRODUCTION,
        description="production: the newest version of this pipeline's model (random weights if "
        "there is none). NAME or NAME@VERSION: a model of the registry. A path with a /: the "
        "folder of a SavedModel. The network must be the same. Tokens that its vocabulary does "
        "not contain start from the tokens that it splits them into.",
    )
    optimizer: bool = Field(
        default=False,
        description="Continue with the state of the optimizer and of the schedule, and save both "
        "with the model for the next training (twice the size of the weights). The state is "
        "reset if the vocabulary gains tokens.",
    )

    def resolved(self, base: Path) -> Self:
        """Return a copy with an absolute path; a name of the registry does not change."""
        if "/" not in self.model:
            return self
        return self.model_copy(update={"model": absolute(base, self.model)})


class TrainingConfig(Section):
    """How the model learns. Training stops at the first of max_epochs, max_steps, max_minutes."""

    batch_tokens: Positive = Field(
        default=4096,
        description="Maximum number of tokens in a batch, of source and target together, including "
        "padding.",
    )
    max_length: Positive = Field(
        default=100,
        description="Maximum number of tokens of a side; longer rows are not trained on.",
    )
    max_epochs: Positive | None = Field(
        default=20, description="Maximum number of epochs; null: no limit."
    )
    max_steps: Positive | None = Field(
        default=None, description="Maximum number of steps; null: no limit."
    )
    max_minutes: PositiveFloat | None = Field(
        default=None, description="Maximum training time in minutes; null: no limit."
    )
    learning_rate: PositiveFloat = Field(default=0.001, description="Peak learning rate of Adam.")
    beta_1: Rate = Field(default=0.9, description="Adam's decay rate of the first moment.")
    beta_2: Rate = Field(default=0.98, description="Adam's decay rate of the second moment.")
    epsilon: PositiveFloat = Field(default=1e-9, description="Adam's epsilon.")
    weight_decay: NonNegative = Field(
        default=0.0,
        description="Weight decay of AdamW, not applied to biases and normalization; 0: none.",
    )
    schedule: LearningRateScheduleConfig = Field(
        default=ConstantScheduleConfig(), description="Learning rate schedule."
    )
    label_smoothing: Rate = Field(
        default=0.1, description="Probability distributed over all tokens instead of the target."
    )
    clip_norm: PositiveFloat | None = Field(
        default=1.0, description="Maximum global norm of the gradients; null: no clipping."
    )
    gradient_accumulation_steps: Positive = Field(
        default=1,
        description="Batches per optimizer step. All other keys count optimizer steps.",
    )
    evaluate_every: Positive | None = Field(
        default=None, description="Steps between evaluations; null: evaluate after each epoch."
    )
    early_stopping: EarlyStoppingConfig | None = Field(
        default=EarlyStoppingConfig(),
        description="Stop when the evaluation metric stops improving; null: never.",
    )
    validation_rows: Positive | None = Field(
        default=None,
        description="Rows of the eval split to decode at each evaluation, for the first metric of "
        "the task; null: none, or all if early_stopping.metric is a metric.",
    )
    validation_tokenize: BleuTokenizer = Field(
        default="13a",
        description="sacreBLEU tokenization for BLEU during training; zh for Chinese.",
    )
    ema: MovingAverageConfig | None = Field(
        default=None,
        description="Evaluate and export a moving average of the weights; null: the weights.",
    )
    checkpoint_averaging: CheckpointAveragingConfig | None = Field(
        default=None,
        description="Export the average of several checkpoints; null: the best checkpoint.",
    )
    reinforce: ReinforceConfig = Field(
        default=ReinforceConfig(),
        description="Options of hard attention with training: reinforce.",
    )
    penalties: AttentionPenaltiesConfig = Field(
        default=AttentionPenaltiesConfig(), description="Penalties on the attention."
    )
    checkpoint_seconds: Annotated[Positive, NotInTrainingKey] = Field(
        default=60,
        description="Seconds between checkpoints, that is the maximum loss if a run is killed.",
    )
    devices: Literal["one", "all", "workers"] = Field(
        default="one",
        description="one: one device; all: all GPUs of this machine; workers: all GPUs of several "
        "machines, as TF_CONFIG names them (start the others with `regard worker`). batch_tokens "
        "is the total over all devices.",
    )
    precision: Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"] = Field(
        default="auto",
        description="Precision of the computation; weights are always float32. auto: "
        "mixed_bfloat16 on GPUs from Ampere on, mixed_float16 from Volta on, float32 on CPUs.",
    )
    jit_compile: bool = Field(
        default=False,
        description="Compile the steps with XLA, once per batch shape. Not for recurrent layers.",
    )
    warm_start: WarmStartConfig | None = Field(
        default=None, description="Start from the weights of a model; null: random weights."
    )
    seed: Annotated[int, Field(ge=0, lt=2**32)] = Field(
        default=17, description="Random seed of initialization, dropout and shuffling."
    )
    deterministic: bool = Field(
        default=False,
        description="Use deterministic operations, so that repeated trainings give equal weights. "
        "Slower.",
    )

    def resolved(self, base: Path) -> Self:
        """Return a copy with absolute paths."""
        start = self.warm_start
        return self.model_copy(update={"warm_start": start and start.resolved(base)})
