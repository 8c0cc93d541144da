"""The section ``training``: how the model learns, and when it stops."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from typing_extensions import Self

from regard.core.bounds import Fraction, NonNegative, Positive, PositiveFloat, Rate, Share
from regard.core.modules import REFERENCE
from regard.models.settings.base import (
    BatchTokens,
    ByType,
    Listed,
    NotInTrainingKey,
    Problem,
    Section,
)
from regard.models.settings.fine_tuning import LoraConfig, Part, WarmStartConfig
from regard.models.settings.layer_options import LayerSection, any_of
from regard.models.settings.text_noise import TextNoiseConfig
from regard.models.settings.word_alignments import GuidedAlignmentConfig

Version = Annotated[str, Field(pattern="^[^/@]+@[0-9]+$")]
Backend = Literal["tensorflow", "jax"]
BleuTokenizer = Literal["13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "none"]


class ScheduleSection(LayerSection, source=Path(__file__).parents[1] / "schedules.py"):
    """A learning rate schedule. ``models/schedules.py`` has the schedules and their options.

    Attributes:
        type: Schedule type.
    """

    type: str
    if TYPE_CHECKING:  # an option of every schedule, with the default of its layer
        warmup_steps: int


if TYPE_CHECKING:
    LearningRateScheduleConfig = ScheduleSection
else:
    LearningRateScheduleConfig = Annotated[
        any_of(ScheduleSection.variants.values()), ByType("constant")
    ]


class EarlyStoppingConfig(Section):
    """Stops the training when the evaluation metric stops improving.

    Attributes:
        patience: Evaluations without improvement.
        min_delta: Minimum improvement, in nats per token for the loss, else in the unit of the
            metric.
        metric: What evaluations are compared by, here and wherever the best one counts: the loss,
            or a metric of decoded outputs, for example bleu.
    """

    patience: Positive = 3
    min_delta: NonNegative = 0.0
    metric: str = "loss"


class CheckpointAveragingConfig(Section):
    """Average of the weights of several evaluations, which is exported (Vaswani 2017).

    Attributes:
        checkpoints: Number of evaluations to average.
        of: Last ones, or the best by early_stopping.metric.
    """

    checkpoints: Annotated[int, Field(ge=2)] = 5
    of: Literal["last", "best"] = "last"


class ReinforceConfig(Section):
    """REINFORCE, for hard attention with training: reinforce (Xu 2015, section 4.1).

    Attributes:
        reward_weight: Weight of the reward; with 1 the expected gradient is that of the loss, with
            less there is less noise.
        entropy_weight: Weight of the entropy of the attention.
    """

    reward_weight: NonNegative = 0.1
    entropy_weight: NonNegative = 0.002


class AttentionPenaltiesConfig(Section):
    """Penalties on the attention; 0: none.

    Attributes:
        coverage: Weight of repeated attention (See 2017, section 2.3).
        doubly_stochastic: Weight of the penalty on source positions whose total attention is not 1
            (Xu 2015, section 4.2.1).
    """

    coverage: NonNegative = 0.0
    doubly_stochastic: NonNegative = 0.0

    def active(self) -> dict[str, float]:
        """Return the penalties with a weight above 0."""
        return {name: weight for name, weight in self if weight}


class _SamplingConfig(Section):
    """How the probability of the target's token falls.

    Attributes:
        minimum: Minimum probability of the target's token.
    """

    minimum: Share = 0.0

    def to_kwargs(self) -> dict[str, Any]:
        """Return the arguments of ``ScheduledSampling`` as plain values."""
        values = self.model_dump(mode="json")
        return {"schedule": values.pop("type"), **values}


class LinearSamplingConfig(_SamplingConfig):
    """The probability of the target's token falls linearly from 1 to the minimum.

    Attributes:
        type: Schedule type.
        steps: Steps until the minimum.
    """

    type: Literal["linear"] = "linear"
    steps: Positive = 10_000


class ExponentialSamplingConfig(_SamplingConfig):
    """The probability of the target's token in step i is k^i.

    Attributes:
        type: Schedule type.
        k: Factor on the probability per step.
    """

    type: Literal["exponential"] = "exponential"
    k: Fraction = 0.9999


class InverseSigmoidSamplingConfig(_SamplingConfig):
    """The probability of the target's token in step i is k / (k + exp(i / k)).

    Attributes:
        type: Schedule type.
        k: Constant: the probability is 0.5 in step k ln k.
    """

    type: Literal["inverse_sigmoid"] = "inverse_sigmoid"
    k: Annotated[float, Field(ge=1.0)] = 1000.0


ScheduledSamplingConfig = Annotated[
    LinearSamplingConfig | ExponentialSamplingConfig | InverseSigmoidSamplingConfig,
    ByType("inverse_sigmoid"),
]


class SubwordSamplingConfig(Section):
    """Random segmentations of the texts in every epoch: of all segmentations of a unigram tokenizer
    (Kudo 2018), or with skipped merges of a bpe tokenizer (Provilkov 2020).

    Attributes:
        alpha: unigram: exponent of the probabilities of segmentations; 0: all are equal. bpe:
            Probability that a merge is skipped.
    """

    alpha: Share = 0.1


class TrainingConfig(Section):
    """How the model learns. Training stops at the first of max_epochs, max_steps, max_minutes.

    Attributes:
        batch_tokens: Maximum number of tokens in a batch, of source and target together, including
            padding. auto: the largest batch that fits the GPU, or the smallest that is about as
            fast as any on the CPU; found once per training. The learning rate does not change.
        max_length: Maximum tokens of a side; longer rows are not trained on.
        max_epochs: Maximum number of epochs; null: no limit.
        max_steps: Maximum number of steps; null: no limit.
        max_minutes: Maximum minutes of training; null: no limit.
        learning_rate: Peak learning rate of Adam.
        beta_1: Adam's decay rate of the first moment.
        beta_2: Adam's decay rate of the second moment.
        epsilon: Adam's epsilon, added to the root of the second moment before the correction of its
            bias (the formula at the end of section 2 of Kingma & Ba 2015, not of Algorithm 1).
        weight_decay: Weight decay of AdamW, not applied to biases and normalization; 0: none. Each
            step subtracts this share of a weight, multiplied by the learning rate.
        schedule: Learning rate schedule.
        label_smoothing: Probability given to all tokens instead of the target.
        clip_norm: Maximum global gradient norm; null: no clipping.
        gradient_accumulation_steps: Batches per optimizer step. All other keys count optimizer
            steps.
        evaluate_every: Steps between evaluations; null: one epoch.
        early_stopping: Stop when the evaluation metric stops improving; null: never.
        validation_rows: Rows of the eval split to decode at each evaluation, for the first metric
            of the task; null: none, or all if early_stopping.metric is a metric.
        validation_tokenize: sacreBLEU tokenization for BLEU during training; zh for Chinese.
        checkpoint_averaging: Export the average of several checkpoints; null: the best checkpoint.
        reinforce: Options of hard attention with training: reinforce.
        penalties: Attention penalties.
        scheduled_sampling: Sampled tokens instead of those of the target as inputs of the decoder,
            more often with every step (Bengio 2015); null: none.
        guided_alignment: Supervision of the attention by word alignments; null: none.
        subword_sampling: Random segmentations of the training texts, which batch_tokens does not
            count; null: those of the tokenizer.
        noise: Changed sources, drawn again in every epoch: capital letters, missing accents, other
            punctuation, typing errors, wrong spaces. batch_tokens does not count their additional
            tokens; null: none.
        checkpoint_seconds: Seconds between checkpoints, that is the maximum loss if a run is
            killed.
        backend: Library that trains; the exported model is TensorFlow's in either case. jax: Keras
            on JAX, in a process of its own, for GPUs with CUDA 12 or 13; XLA compiles every step.
        devices: one: one device; all: all GPUs of this machine; workers: all GPUs of several
            machines, as TF_CONFIG names them (start the others with `regard worker`). batch_tokens
            is the total over all devices.
        precision: Precision of the computation; weights are always float32. auto: mixed_bfloat16 on
            GPUs from Ampere on, mixed_float16 from Volta on, float32 on CPUs. On CPUs with
            AVX512-BF16 or AMX, mixed_bfloat16 is faster than float32, on others slower.
        jit_compile: Compile the steps with XLA, once per batch shape. Not for recurrent layers.
        warm_start: Model to start from; null: random weights.
        freeze: Parts of the model whose weights do not change, by the names in the paths of their
            weights, for example encoder, embedding, attention, decoder/layer_0 or bias. For use
            with warm_start.
        lora: Train low-rank changes of kernels instead of all weights; null: all weights.
        ensemble: Versions of the registry, NAME@VERSION, that decode together with the trained
            model; the run publishes the ensemble. Text-to-text tasks with equal vocabularies only.
        run_fn: Function of your own, MODULE:NAME, that trains and exports in place of Regard's;
            null: Regard's (docs/how-to/extending.md).
        seed: Random seed of initialization, dropout and shuffling.
        deterministic: Use deterministic operations, so that repeated trainings give equal weights.
            Slower.
    """

    batch_tokens: BatchTokens = 4096
    max_length: Positive = 100
    max_epochs: Positive | None = 20
    max_steps: Positive | None = None
    max_minutes: PositiveFloat | None = None
    learning_rate: PositiveFloat = 0.001
    beta_1: Rate = 0.9
    beta_2: Rate = 0.98
    epsilon: PositiveFloat = 1e-9
    weight_decay: NonNegative = 0.0
    schedule: LearningRateScheduleConfig = ScheduleSection.create("constant")
    label_smoothing: Rate = 0.1
    clip_norm: PositiveFloat | None = 1.0
    gradient_accumulation_steps: Positive = 1
    evaluate_every: Positive | None = None
    early_stopping: EarlyStoppingConfig | None = EarlyStoppingConfig()
    validation_rows: Positive | None = None
    validation_tokenize: BleuTokenizer = "13a"
    checkpoint_averaging: CheckpointAveragingConfig | None = None
    reinforce: ReinforceConfig = ReinforceConfig()
    penalties: AttentionPenaltiesConfig = AttentionPenaltiesConfig()
    scheduled_sampling: ScheduledSamplingConfig | None = None
    guided_alignment: GuidedAlignmentConfig | None = None
    subword_sampling: SubwordSamplingConfig | None = None
    noise: TextNoiseConfig | None = None
    checkpoint_seconds: Annotated[Positive, NotInTrainingKey] = 60
    backend: Backend = "tensorflow"
    devices: Literal["one", "all", "workers"] = "one"
    precision: Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"] = "auto"
    jit_compile: bool = False
    warm_start: WarmStartConfig | None = None
    freeze: Annotated[Listed[Part], Field(examples=[["encoder", "embedding"]])] = ()
    lora: LoraConfig | None = None
    ensemble: Annotated[Listed[Version], Field(max_length=15), NotInTrainingKey] = ()
    run_fn: Annotated[str, Field(pattern=REFERENCE)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 17
    deterministic: bool = False

    def own_problems(self) -> Iterator[Problem]:
        """Yield limits and schedules that cannot work."""
        minimum = 2 * self.max_length
        if self.batch_tokens != "auto" and self.batch_tokens < minimum:
            message = f"must be at least {minimum}, two sides of max_length"
            yield Problem(("batch_tokens",), message)
        limits = (self.max_epochs, self.max_steps, self.max_minutes, self.early_stopping)
        if all(limit is None for limit in limits):
            message = "training would never end; set one of max_epochs, max_steps, max_minutes, "
            yield Problem(("max_epochs",), f"{message}early_stopping")
        if self.lora and self.warm_start and self.warm_start.optimizer:
            message = "the optimizer of training.lora has a state of other weights; use false"
            yield Problem(("warm_start", "optimizer"), message)
        yield from self._schedule_problems()

    def _schedule_problems(self) -> Iterator[Problem]:
        schedule: Any = self.schedule
        if hasattr(schedule, "steps"):
            yield from self._end_problems(schedule)
        if getattr(schedule, "start_step", schedule.warmup_steps) < schedule.warmup_steps:
            message = f"must be at least warmup_steps: {schedule.warmup_steps}"
            yield Problem(("schedule", "start_step"), message)
        if getattr(schedule, "min_learning_rate", 0.0) > self.learning_rate:
            message = f"must be at most learning_rate: {self.learning_rate:g}"
            yield Problem(("schedule", "min_learning_rate"), message)

    def _end_problems(self, schedule: Any) -> Iterator[Problem]:
        """Check that a schedule ends after its warm-up, and that it can be continued."""
        start, end = self.warm_start, schedule.steps or self.max_steps
        if end is None:
            message = f"{schedule.type} needs a last step; set steps, or training.max_steps"
            yield Problem(("schedule", "steps"), message)
        elif end <= schedule.warmup_steps:
            message = f"must be less than {end}, the last step"
            yield Problem(("schedule", "warmup_steps"), message)
        continues = end is not None and (self.max_steps is None or self.max_steps < end)
        if (
            start
            and start.optimizer
            and not getattr(schedule, "min_learning_rate", 0.0)
            and not continues
        ):
            message = "the next training would start with a rate of 0; use false, another "
            message += "schedule, or schedule.steps for all trainings together"
            yield Problem(("warm_start", "optimizer"), message)

    def resolved(self, base: Path) -> Self:
        """Return a copy with absolute paths."""
        start = self.warm_start
        return self.model_copy(update={"warm_start": start and start.resolved(base)})
