"""The section ``training``: how the model learns, and when it stops."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import Self

from regard.models.settings.base import (
    ByType,
    Count,
    Fraction,
    Listed,
    NonNegative,
    NotInTrainingKey,
    Positive,
    PositiveFloat,
    Rate,
    Section,
    Share,
    absolute,
    option,
)

# The value of ``warm_start.model`` for the newest version of the pipeline's own model.
PRODUCTION = "production"
Version = Annotated[str, Field(pattern="^[^/@]+@[0-9]+$")]
BleuTokenizer = Literal["13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "none"]


class _WarmupScheduleConfig(Section):
    warmup_steps: Count = option(0, "Steps until the learning rate reaches its peak; 0: none.")


class ConstantScheduleConfig(_WarmupScheduleConfig):
    """Constant after a warm-up."""

    type: Literal["constant"] = option("constant", "Schedule type.")


class InverseSqrtScheduleConfig(Section):
    """Inverse square root of the step after a linear warm-up (Vaswani 2017)."""

    type: Literal["inverse_sqrt"] = option("inverse_sqrt", "Schedule type.")
    warmup_steps: Positive = option(4000, "Steps until the learning rate reaches its peak.")


class ExponentialScheduleConfig(_WarmupScheduleConfig):
    """Constant at first, then exponential decay."""

    type: Literal["exponential"] = option("exponential", "Schedule type.")
    start_step: Count = option(5000, "Step at which the decay begins.")
    decay_steps: Positive = option(1000, "Steps of one decay by the rate.")
    rate: Annotated[float, Field(gt=0.0, le=1.0)] = option(
        0.5, "Factor on the learning rate per decay_steps."
    )


class CosineScheduleConfig(_WarmupScheduleConfig):
    """Half a cosine (Loshchilov and Hutter 2017)."""

    type: Literal["cosine"] = option("cosine", "Schedule type.")
    steps: Positive | None = option(None, "Step of the minimum; null: training.max_steps.")
    min_learning_rate: NonNegative = option(0.0, "Final learning rate.")


class PlateauScheduleConfig(_WarmupScheduleConfig):
    """Reduces the learning rate when the evaluation metric stops improving."""

    type: Literal["plateau"] = option("plateau", "Schedule type.")
    factor: Fraction = option(0.5, "Factor on the learning rate.")
    patience: Positive = option(
        2, "Evaluations without improvement of early_stopping.metric before a reduction."
    )
    min_learning_rate: NonNegative = option(0.0, "Minimum learning rate.")


LearningRateScheduleConfig = Annotated[
    ConstantScheduleConfig
    | InverseSqrtScheduleConfig
    | ExponentialScheduleConfig
    | CosineScheduleConfig
    | PlateauScheduleConfig,
    ByType("constant"),
]


class EarlyStoppingConfig(Section):
    """Stops the training when the evaluation metric stops improving."""

    patience: Positive = option(3, "Evaluations without improvement.")
    min_delta: NonNegative = option(
        0.0, "Minimum improvement, in nats per token for the loss, else in the unit of the metric."
    )
    metric: str = option(
        "loss",
        "What evaluations are compared by, here and wherever the best one counts: the "
        "loss, or a metric of decoded outputs, for example bleu.",
    )


class MovingAverageConfig(Section):
    """Exponential moving average of the weights, which is evaluated and exported."""

    decay: Fraction = option(0.999, "Weight of the previous average at each step.")


class CheckpointAveragingConfig(Section):
    """Average of the weights of several evaluations, which is exported (Vaswani 2017)."""

    checkpoints: Annotated[int, Field(ge=2)] = option(5, "Number of evaluations to average.")
    of: Literal["last", "best"] = option("last", "Last ones, or the best by early_stopping.metric.")


class ReinforceConfig(Section):
    """REINFORCE, for hard attention with training: reinforce (Xu 2015, section 4.1)."""

    reward_weight: NonNegative = option(1.0, "Weight of the reward.")
    entropy_weight: NonNegative = option(0.002, "Weight of the entropy of the attention.")


class AttentionPenaltiesConfig(Section):
    """Penalties on the attention; 0: none."""

    coverage: NonNegative = option(0.0, "Weight of repeated attention (See 2017, section 2.3).")
    doubly_stochastic: NonNegative = option(
        0.0,
        "Weight of the penalty on source positions whose total attention is not 1 (Xu "
        "2015, section 4.2.1).",
    )

    def active(self) -> dict[str, float]:
        """Return the penalties with a weight above 0."""
        return {name: weight for name, weight in self if weight}


class AlignmentLinksConfig(Section):
    """Links between the words of source and target."""

    links: str = Field(
        description="Column of data.extra with the links in Pharaoh format, 0-0 1-2: source, then "
        "target, from 0. Target words without a link are not supervised.",
        examples=["links"],
    )
    unit: Literal["word", "character"] = option("word", "Unit that links count.")


class GuidedAlignmentConfig(AlignmentLinksConfig):
    """Supervises the attention with word alignments (Chen 2016, section 3.1; Garg 2019)."""

    weight: PositiveFloat = option(0.05, "Weight of the cross-entropy of the attention.")
    layer: Positive | None = option(
        None, "Decoder layer of a Transformer, from 1; null: the last one."
    )
    head: Positive | None = option(
        None, "Attention head of the layer, from 1; null: the mean of all heads."
    )

    def to_kwargs(self) -> dict[str, Any]:
        """Return what concerns the model as plain values."""
        return self.model_dump(include={"weight", "layer", "head"})


class _SamplingConfig(Section):
    minimum: Share = option(0.0, "Minimum probability of the target's token.")

    def to_kwargs(self) -> dict[str, Any]:
        """Return the arguments of ``ScheduledSampling`` as plain values."""
        values = self.model_dump(mode="json")
        return {"schedule": values.pop("type"), **values}


class LinearSamplingConfig(_SamplingConfig):
    """The probability of the target's token falls linearly from 1 to the minimum."""

    type: Literal["linear"] = option("linear", "Schedule type.")
    steps: Positive = option(10_000, "Steps until the minimum.")


class ExponentialSamplingConfig(_SamplingConfig):
    """The probability of the target's token in step i is k^i."""

    type: Literal["exponential"] = option("exponential", "Schedule type.")
    k: Fraction = option(0.9999, "Factor on the probability per step.")


class InverseSigmoidSamplingConfig(_SamplingConfig):
    """The probability of the target's token in step i is k / (k + exp(i / k))."""

    type: Literal["inverse_sigmoid"] = option("inverse_sigmoid", "Schedule type.")
    k: Annotated[float, Field(ge=1.0)] = option(
        1000.0, "Constant: the probability is 0.5 in step k ln k."
    )


ScheduledSamplingConfig = Annotated[
    LinearSamplingConfig | ExponentialSamplingConfig | InverseSigmoidSamplingConfig,
    ByType("inverse_sigmoid"),
]


class WarmStartConfig(Section):
    """Starts from the weights of a model that has been trained and exported before."""

    model: Annotated[str, Field(min_length=1)] = option(
        PRODUCTION,
        "production: the newest version of this pipeline's model (random weights if "
        "there is none). NAME or NAME@VERSION: a model of the registry. A path with a /: the "
        "folder of a SavedModel. The network must be the same. Tokens that its vocabulary does "
        "not contain start from the tokens that it splits them into.",
    )
    optimizer: bool = option(
        False,
        "Continue with the state of the optimizer and of the schedule, and save both "
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

    batch_tokens: Annotated[int, Field(ge=1, le=10_000_000)] = option(
        4096,
        "Maximum number of tokens in a batch, of source and target together, including padding.",
    )
    max_length: Positive = option(100, "Maximum tokens of a side; longer rows are not trained on.")
    max_epochs: Positive | None = option(20, "Maximum number of epochs; null: no limit.")
    max_steps: Positive | None = option(None, "Maximum number of steps; null: no limit.")
    max_minutes: PositiveFloat | None = option(None, "Maximum minutes of training; null: no limit.")
    learning_rate: PositiveFloat = option(0.001, "Peak learning rate of Adam.")
    beta_1: Rate = option(0.9, "Adam's decay rate of the first moment.")
    beta_2: Rate = option(0.98, "Adam's decay rate of the second moment.")
    epsilon: PositiveFloat = option(1e-9, "Adam's epsilon.")
    weight_decay: NonNegative = option(
        0.0, "Weight decay of AdamW, not applied to biases and normalization; 0: none."
    )
    schedule: LearningRateScheduleConfig = option(
        ConstantScheduleConfig(), "Learning rate schedule."
    )
    label_smoothing: Rate = option(0.1, "Probability given to all tokens instead of the target.")
    clip_norm: PositiveFloat | None = option(
        1.0, "Maximum global gradient norm; null: no clipping."
    )
    gradient_accumulation_steps: Positive = option(
        1, "Batches per optimizer step. All other keys count optimizer steps."
    )
    evaluate_every: Positive | None = option(None, "Steps between evaluations; null: one epoch.")
    early_stopping: EarlyStoppingConfig | None = option(
        EarlyStoppingConfig(), "Stop when the evaluation metric stops improving; null: never."
    )
    validation_rows: Positive | None = option(
        None,
        "Rows of the eval split to decode at each evaluation, for the first metric of "
        "the task; null: none, or all if early_stopping.metric is a metric.",
    )
    validation_tokenize: BleuTokenizer = option(
        "13a", "sacreBLEU tokenization for BLEU during training; zh for Chinese."
    )
    ema: MovingAverageConfig | None = option(
        None, "Evaluate and export a moving average of the weights; null: the weights."
    )
    checkpoint_averaging: CheckpointAveragingConfig | None = option(
        None, "Export the average of several checkpoints; null: the best checkpoint."
    )
    reinforce: ReinforceConfig = option(
        ReinforceConfig(), "Options of hard attention with training: reinforce."
    )
    penalties: AttentionPenaltiesConfig = option(AttentionPenaltiesConfig(), "Attention penalties.")
    scheduled_sampling: ScheduledSamplingConfig | None = option(
        None,
        "Sampled tokens instead of those of the target as inputs of the decoder, more often with "
        "every step (Bengio 2015); null: none.",
    )
    guided_alignment: GuidedAlignmentConfig | None = option(
        None, "Supervision of the attention by word alignments; null: none."
    )
    checkpoint_seconds: Annotated[Positive, NotInTrainingKey] = option(
        60, "Seconds between checkpoints, that is the maximum loss if a run is killed."
    )
    devices: Literal["one", "all", "workers"] = option(
        "one",
        "one: one device; all: all GPUs of this machine; workers: all GPUs of several "
        "machines, as TF_CONFIG names them (start the others with `regard worker`). batch_tokens "
        "is the total over all devices.",
    )
    precision: Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"] = option(
        "auto",
        "Precision of the computation; weights are always float32. auto: "
        "mixed_bfloat16 on GPUs from Ampere on, mixed_float16 from Volta on, float32 on CPUs.",
    )
    jit_compile: bool = option(
        False, "Compile the steps with XLA, once per batch shape. Not for recurrent layers."
    )
    warm_start: WarmStartConfig | None = option(None, "Model to start from; null: random weights.")
    ensemble: Annotated[Listed[Version], Field(max_length=15), NotInTrainingKey] = option(
        (),
        "Versions of the registry, NAME@VERSION, that decode together with the trained model; the "
        "run publishes the ensemble. Text-to-text tasks with equal vocabularies only.",
    )
    seed: Annotated[int, Field(ge=0, lt=2**32)] = option(
        17, "Random seed of initialization, dropout and shuffling."
    )
    deterministic: bool = option(
        False,
        "Use deterministic operations, so that repeated trainings give equal weights. Slower.",
    )

    def resolved(self, base: Path) -> Self:
        """Return a copy with absolute paths."""
        start = self.warm_start
        return self.model_copy(update={"warm_start": start and start.resolved(base)})
