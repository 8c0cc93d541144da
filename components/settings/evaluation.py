"""The section ``evaluation``: what a model is measured by, and when it may be published."""

import math
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from regard.components.settings.check_limits import CheckConfig, CheckSetConfig
from regard.core.bounds import Count, Fraction, NonNegative, Positive, PositiveFloat, Share
from regard.models.metrics import METRICS
from regard.models.settings.base import Listed, Problem, Section
from regard.models.settings.text_noise import NoiseKind, WritingErrorsConfig

_METRICS = ", ".join(METRICS.own)


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        context = {"reason": str(error)}
        raise PydanticCustomError("pattern", "no regular expression: {reason}", context) from None
    return pattern


def _increases(bounds: Sequence[float]) -> bool:
    return list(bounds) == sorted(set(bounds))


class ProductionComparisonConfig(Section):
    """The comparison with the model in production.

    A model is worse where its metric is by more than the tolerance, and the test does not take the
    difference for chance.

    Attributes:
        metric: Metric to compare.
        tolerance: Tolerated loss, in the unit of the metric.
        test: Significance test: randomization (Riezler and Maxwell 2005), or bootstrap (Koehn
            2004), which needs some hundred rows and does not apply to slices; null: every loss
            beyond the tolerance counts.
        significance: Significance level: a loss with a p-value at or above it is attributed to
            chance.
        slices: Slices in which the candidate must not be worse either, for example domain=news or
            length=31+; a name alone, such as domain, stands for all of its slices. They are tested
            by randomization, and their p-values are adjusted with Holm's method (1979).
    """

    metric: str = "bleu"
    tolerance: NonNegative = 0.0
    test: Literal["bootstrap", "randomization"] | None = "randomization"
    significance: Fraction = 0.05
    slices: Annotated[Listed[str], Field(examples=[["length", "domain=news"]])] = ()


class OutputCheckConfig(CheckConfig):
    """A limit on the share of degenerate outputs, and the action above it.

    Attributes:
        action: What happens above the limit; `fail` prevents publishing.
    """

    action: Literal["warn", "fail"] = "fail"


class OutputLengthRatioCheckConfig(OutputCheckConfig):
    """Outputs much longer or shorter than every reference.

    Attributes:
        ratio: Maximum ratio of the lengths of output and reference, in characters.
        limit: Maximum share of affected outputs.
    """

    ratio: Annotated[float, Field(gt=1.0)] = 2.5
    limit: Share = 0.05


class OutputChecksConfig(CheckSetConfig):
    """Checks of text outputs.

    Attributes:
        empty: Empty outputs.
        copies: Outputs equal to the source.
        repetitions: Outputs with a phrase repeated three times or more.
        length_ratio: Outputs much longer or shorter than every reference.
        script: Outputs with letters of a script that neither references nor source contain.
    """

    empty: OutputCheckConfig = OutputCheckConfig(limit=0.01)
    copies: OutputCheckConfig = OutputCheckConfig(limit=0.05)
    repetitions: OutputCheckConfig = OutputCheckConfig(limit=0.01)
    length_ratio: OutputLengthRatioCheckConfig = OutputLengthRatioCheckConfig()
    script: OutputCheckConfig = OutputCheckConfig(limit=0.01)


class SlicePatternConfig(Section):
    """Rows with a match of a regular expression.

    Attributes:
        feature: Feature to search.
        matches: Regular expression, found anywhere in the feature.
    """

    feature: str
    matches: Annotated[str, AfterValidator(_compiles), Field(examples=[r"\?$"])]


class SlicesConfig(Section):
    """Slices of the test split, in addition to those by length.

    Attributes:
        by: Text features whose values define slices, for example a column of data.extra: the 30
            most frequent values, and the rest. file is the name of a row's file in data.test,
            without its folder; of parallel files the first side's.
        patterns: Slices by regular expressions, with their names.
        oov: For models that read text: upper bounds of the share of words that are not in train
            (with over 50,000 words, not among the 50,000 most frequent). null: no such slices.
        target_overlap: For models that write text: rows with a reference that is also a target of
            the train split (target_overlap=yes), and all other rows (target_overlap=no). Needs
            data.checks.target_overlap. The model in production may have seen other targets.
        thresholds: Thresholds as in evaluation.thresholds for one slice (domain=news,
            pattern=questions, length=0-10, oov=0.1+, target_overlap=no) or for all slices of a kind
            (domain).
    """

    by: Listed[str] = ()
    patterns: dict[str, SlicePatternConfig] = {}
    oov: Listed[Share] | None = (0.0, 0.1)
    target_overlap: bool = True
    thresholds: Annotated[
        dict[str, dict[str, float]], Field(examples=[{"domain=news": {"bleu": 25.0}}])
    ] = {}

    def own_problems(self) -> Iterator[Problem]:
        """Yield bounds that do not increase."""
        if self.oov is not None and not (self.oov and _increases(self.oov)):
            yield Problem(("oov",), "must be a list of increasing bounds, or null")


class GoldAlignmentConfig(Section):
    """Gold word alignments of the test split, for the alignment error rate (AER).

    Attributes:
        gold: Column of data.extra with the links in Pharaoh format, 0-0 1-2 2p3: source, then
            target, from 0; p marks a possible link.
        unit: Unit that links count.
        targets: Target words whose links count: all (Och and Ney 2003), or those with a gold link,
            where other words are not annotated.
        layer: Decoder layer of a Transformer, from 1; null: the last one.
        head: Attention head of the layer, from 1; null: the mean of all heads.
    """

    gold: Annotated[str, Field(examples=["links"])]
    unit: Literal["word", "character"] = "word"
    targets: Literal["all", "gold"] = "all"
    layer: Positive | None = None
    head: Positive | None = None

    def heads_json(self) -> str:
        """``layer`` and ``head`` as JSON, which is all of it that concerns the model."""
        return self.model_dump_json(include={"layer", "head"})


class RobustnessConfig(WritingErrorsConfig):
    """The test split with changed inputs, for each kind once more, and what a model may lose by it.

    Attributes:
        kinds: Kinds of changes: capital letters, a capital letter at the beginning of each word,
            without accents, without punctuation, with doubled marks of sentences, typing errors,
            missing spaces and spaces within words. Each applies to all rows. null: all kinds.
        seed: Random seed of typing errors and spaces.
        metric: Metric of max_loss; null: the first of evaluation.metrics that needs neither
            attention nor a command.
        max_loss: Maximum loss by each kind for a model to be published, in the unit of the metric:
            the score of the clean inputs minus that of the changed ones (the reverse if lower is
            better).
    """

    kinds: Listed[NoiseKind] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 17
    metric: str | None = None
    max_loss: Annotated[
        dict[NoiseKind, NonNegative], Field(examples=[{"upper_case": 5.0, "typing_errors": 4.0}])
    ] = {}

    @property
    def measured_kinds(self) -> tuple[NoiseKind, ...]:
        """The kinds that are measured."""
        return get_args(NoiseKind) if self.kinds is None else self.kinds

    def own_problems(self) -> Iterator[Problem]:
        """Yield kinds that are missing or repeated."""
        kinds = self.measured_kinds
        if not kinds:
            yield Problem(("kinds",), "names no kind; name one, or use evaluation.robustness: null")
        if len(set(kinds)) < len(kinds):
            yield Problem(("kinds",), "a kind is given twice")
        for kind in self.max_loss:
            if kind not in kinds:
                message = f"{kind} is not measured; add it to evaluation.robustness.kinds"
                yield Problem(("max_loss", kind), message)


_split = BeforeValidator(
    lambda value: shlex.split(value) if isinstance(value, str) else value,
    json_schema_input_type=str | list[str],
)
MetricName = Annotated[str, Field(pattern="^[a-z][a-z0-9_]{0,39}$")]


class ExternalMetricConfig(Section):
    """A metric that a command computes.

    Attributes:
        command: Program and arguments, without a shell. It reads source, output and references of a
            row per line, separated by tabs, and prints a number per line. It runs once, for the
            rows of all models and baselines.
        label: Display name; null: the name.
        higher_is_better: Whether a larger value means a better model.
        scale: 100 for values that are percentages.
        timeout: Maximum time in seconds, for all rows.
    """

    command: Annotated[Listed[str], _split, Field(min_length=1, examples=["comet-rows --gpus 0"])]
    label: str | None = None
    higher_is_better: bool = True
    scale: Literal[1, 100] = 1
    timeout: PositiveFloat = 3600.0


class EvaluationConfig(Section):
    """Metrics of the test split, and what a model must reach to be published.

    Attributes:
        external: Metrics that commands compute, as means over rows, by name.
        tokenize: sacreBLEU tokenization for BLEU; zh for Chinese.
        baselines: Baselines without a model, which the first version must exceed significantly (p <
            0.05) to be published: copy outputs the input, lead_1 and lead_3 its first sentences,
            most_frequent the most frequent reference, chance a reference of another row.
        lowercase: Ignore case in all metrics.
        length_buckets: Upper bounds of input lengths, in tokens or points, for slices by length.
        slices: Further slices of the test split.
        alignment: Gold word alignments for the metric aer, which evaluates the model's attention;
            null: none.
        thresholds: Minimum of each metric for a model to be published (maximum if lower is better).
            BLEU, chrF, TER and ROUGE range from 0 to 100, exact_match from 0 to 1.
        production: Comparison with the model in production, which a new model must not lose; null:
            none. The default metric is the first of metrics.
        robustness: Scores with changed inputs, as writers change them: case, accents, punctuation,
            typing errors, spaces; null: none.
        checks: Degenerate outputs that metrics do not show.
        samples: Number of resamples for 95% confidence intervals and for the comparison with
            production. 0: neither.
        batch_size: Rows per batch.
    """

    metrics: Listed[str] = Field(
        default=("bleu", "chrf", "exact_match"),
        description=f"What is computed on the test split, of what fits the task: {_METRICS}. "
        "bleu_lc is BLEU without regard to case, as many papers give it.",
    )
    external: dict[MetricName, ExternalMetricConfig] = {}
    tokenize: Literal["13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "none"] = "13a"
    baselines: Listed[Literal["copy", "lead_1", "lead_3", "most_frequent", "chance"]] = ("chance",)
    lowercase: bool = False
    length_buckets: Listed[Positive] = (10, 20, 30)
    slices: SlicesConfig = SlicesConfig()
    alignment: GoldAlignmentConfig | None = None
    thresholds: Annotated[dict[str, float], Field(examples=[{"bleu": 30.0}])] = {}
    production: ProductionComparisonConfig | None = ProductionComparisonConfig()
    robustness: RobustnessConfig | None = None
    checks: OutputChecksConfig = OutputChecksConfig()
    samples: Count = 1000
    batch_size: Positive = 64

    def own_problems(self) -> Iterator[Problem]:
        """Yield lists with repeated items, and a comparison without samples."""
        if len(set(self.metrics)) < len(self.metrics):
            yield Problem(("metrics",), "a metric is given twice")
        if len(set(self.baselines)) < len(self.baselines):
            yield Problem(("baselines",), "a baseline is given twice")
        if not _increases(self.length_buckets):
            yield Problem(("length_buckets",), "the bounds must increase")
        yield from self._production_problems()

    def _production_problems(self) -> Iterator[Problem]:
        """Check that there are samples for the test of the comparison with production."""
        production, samples = self.production, self.samples
        if production is None or production.test is None:
            return
        if not samples and "test" in production.model_fields_set:
            message = f"{production.test} needs evaluation.samples; or use null"
            yield Problem(("production", "test"), message)
        elif samples and 1 / (samples + 1) >= production.significance:
            needed = math.ceil(1 / production.significance)
            message = f"must be at least {needed} for significance: {production.significance:g}"
            yield Problem(("samples",), message)

    @model_validator(mode="before")
    @classmethod
    def _compare_by_first_metric(cls, value: Any) -> Any:
        metrics = value.get("metrics") if isinstance(value, dict) else None
        production = value.get("production", {}) if isinstance(value, dict) else None
        if not isinstance(metrics, list | tuple) or not isinstance(production, dict):
            return value
        first, external = metrics[0] if metrics else None, value.get("external")
        own = external if isinstance(external, dict) else {}
        if isinstance(first, str) and (first in own or first in METRICS):
            return {**value, "production": {"metric": metrics[0], **production}}
        return value
