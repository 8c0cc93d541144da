"""The section ``evaluation``: what a model is measured by, and when it may be published."""

from __future__ import annotations

import re
import shlex
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from regard.components.settings.data_checks import CheckConfig, CheckSetConfig
from regard.models.metrics import METRICS
from regard.models.settings.base import (
    Count,
    Fraction,
    Listed,
    NonNegative,
    Positive,
    PositiveFloat,
    Section,
    Share,
    option,
)

_METRICS = ", ".join(METRICS.own)


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        context = {"reason": str(error)}
        raise PydanticCustomError("pattern", "no regular expression: {reason}", context) from None
    return pattern


class ProductionComparisonConfig(Section):
    """The comparison with the model in production.

    A model is worse where its metric is by more than the tolerance, and the test does not take the
    difference for chance.
    """

    metric: str = option("bleu", "Metric to compare.")
    tolerance: NonNegative = option(0.0, "Tolerated loss, in the unit of the metric.")
    test: Literal["bootstrap", "randomization"] | None = option(
        "randomization",
        "Significance test: randomization (Riezler and Maxwell 2005), or bootstrap (Koehn 2004), "
        "which needs some hundred rows and does not apply to slices; null: every loss beyond the "
        "tolerance counts.",
    )
    significance: Fraction = option(
        0.05, "Significance level: a loss with a p-value at or above it is attributed to chance."
    )
    slices: Listed[str] = option(
        (),
        "Slices in which the candidate must not be worse either, for example domain=news or "
        "length=31+; a name alone, such as domain, stands for all of its slices. They are tested "
        "by randomization, and their p-values are adjusted with Holm's method (1979).",
        examples=[["length", "domain=news"]],
    )


class OutputCheckConfig(CheckConfig):
    """A limit on the share of degenerate outputs, and the action above it."""

    action: Literal["warn", "fail"] = option(
        "fail", "What happens above the limit; `fail` prevents publishing."
    )


class OutputLengthRatioCheckConfig(OutputCheckConfig):
    """Outputs much longer or shorter than every reference."""

    ratio: Annotated[float, Field(gt=1.0)] = option(
        2.5, "Maximum ratio of the lengths of output and reference, in characters."
    )
    limit: Share = option(0.05, "Maximum share of affected outputs.")


class OutputChecksConfig(CheckSetConfig):
    """Checks of text outputs."""

    empty: OutputCheckConfig = option(OutputCheckConfig(limit=0.01), "Empty outputs.")
    copies: OutputCheckConfig = option(
        OutputCheckConfig(limit=0.05), "Outputs equal to the source."
    )
    repetitions: OutputCheckConfig = option(
        OutputCheckConfig(limit=0.01),
        "Outputs with a phrase repeated three times or more.",
    )
    length_ratio: OutputLengthRatioCheckConfig = option(
        OutputLengthRatioCheckConfig(), "Outputs much longer or shorter than every reference."
    )
    script: OutputCheckConfig = option(
        OutputCheckConfig(limit=0.01),
        "Outputs with letters of a script that neither references nor source contain.",
    )


class SlicePatternConfig(Section):
    """Rows with a match of a regular expression."""

    feature: str = Field(description="Feature to search.")
    matches: Annotated[str, AfterValidator(_compiles)] = Field(
        description="Regular expression, found anywhere in the feature.", examples=[r"\?$"]
    )


class SlicesConfig(Section):
    """Slices of the test split, in addition to those by length."""

    by: Listed[str] = option(
        (),
        "Text features whose values define slices, for example a column of data.extra: the 30 most "
        "frequent values, and the rest.",
    )
    patterns: dict[str, SlicePatternConfig] = Field(
        default_factory=dict, description="Slices by regular expressions, with their names."
    )
    oov: Listed[Share] | None = option(
        (0.0, 0.1),
        "For models that read text: upper bounds of the share of words that are not in train (with "
        "over 50,000 words, not among the 50,000 most frequent). null: no such slices.",
    )
    target_overlap: bool = option(
        True,
        "For models that write text: rows with a reference that is also a target of the train "
        "split (target_overlap=yes), and all other rows (target_overlap=no). Needs "
        "data.checks.target_overlap. The model in production may have seen other targets.",
    )
    thresholds: dict[str, dict[str, float]] = Field(
        default_factory=dict,
        description="Thresholds as in evaluation.thresholds for one slice (domain=news, "
        "pattern=questions, length=0-10, oov=0.1+, target_overlap=no) or for all "
        "slices of a kind (domain).",
        examples=[{"domain=news": {"bleu": 25.0}}],
    )


class GoldAlignmentConfig(Section):
    """Gold word alignments of the test split, for the alignment error rate (AER)."""

    gold: str = Field(
        description="Column of data.extra with the links in Pharaoh format, 0-0 1-2 2p3: source, "
        "then target, from 0; p marks a possible link.",
        examples=["links"],
    )
    unit: Literal["word", "character"] = option("word", "Unit that links count.")
    targets: Literal["all", "gold"] = option(
        "all",
        "Target words whose links count: all (Och and Ney 2003), or those with a gold link, where "
        "other words are not annotated.",
    )
    layer: Positive | None = option(
        None, "Decoder layer of a Transformer, from 1; null: the last one."
    )
    head: Positive | None = option(
        None, "Attention head of the layer, from 1; null: the mean of all heads."
    )

    def heads_json(self) -> str:
        """``layer`` and ``head`` as JSON, which is all of it that concerns the model."""
        return self.model_dump_json(include={"layer", "head"})


_split = BeforeValidator(
    lambda value: shlex.split(value) if isinstance(value, str) else value,
    json_schema_input_type=str | list[str],
)
MetricName = Annotated[str, Field(pattern="^[a-z][a-z0-9_]{0,39}$")]


class ExternalMetricConfig(Section):
    """A metric that a command computes."""

    command: Annotated[Listed[str], _split, Field(min_length=1)] = Field(
        description="Program and arguments, without a shell. It reads source, output and "
        "references of a row per line, separated by tabs, and prints a number per line.",
        examples=["comet-rows --gpus 0"],
    )
    label: str | None = option(None, "Display name; null: the name.")
    higher_is_better: bool = option(True, "Whether a larger value means a better model.")
    scale: Literal[1, 100] = option(1, "100 for values that are percentages.")
    timeout: PositiveFloat = option(3600.0, "Maximum time in seconds.")


class EvaluationConfig(Section):
    """Metrics of the test split, and what a model must reach to be published."""

    metrics: Listed[str] = option(
        ("bleu", "chrf", "exact_match"),
        f"What is computed on the test split, of what fits the task: {_METRICS}. "
        "bleu_lc is BLEU without regard to case, as many papers give it.",
    )
    external: dict[MetricName, ExternalMetricConfig] = Field(
        default_factory=dict,
        description="Metrics that commands compute, as means over rows, by name.",
    )
    tokenize: Literal["13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "none"] = option(
        "13a", "sacreBLEU tokenization for BLEU; zh for Chinese."
    )
    baselines: Listed[Literal["copy", "lead_1", "lead_3", "most_frequent", "chance"]] = option(
        ("chance",),
        "Baselines without a model, which the first version must exceed significantly (p < 0.05) "
        "to be published: copy outputs the input, lead_1 and lead_3 its first sentences, "
        "most_frequent the most frequent reference, chance a reference of another row.",
    )
    lowercase: bool = option(False, "Ignore case in all metrics.")
    length_buckets: Listed[Positive] = option(
        (10, 20, 30), "Upper bounds of input lengths, in tokens or points, for slices by length."
    )
    slices: SlicesConfig = option(SlicesConfig(), "Further slices of the test split.")
    alignment: GoldAlignmentConfig | None = option(
        None,
        "Gold word alignments for the metric aer, which evaluates the model's attention; null: "
        "none.",
    )
    thresholds: dict[str, float] = Field(
        default_factory=dict,
        description="Minimum of each metric for a model to be published (maximum if lower is "
        "better). BLEU, chrF, TER and ROUGE range from 0 to 100, exact_match from 0 "
        "to 1.",
        examples=[{"bleu": 30.0}],
    )
    production: ProductionComparisonConfig | None = option(
        ProductionComparisonConfig(),
        "Comparison with the model in production, which a new model must not lose; null: none. The "
        "default metric is the first of metrics.",
    )
    checks: OutputChecksConfig = option(
        OutputChecksConfig(), "Degenerate outputs that metrics do not show."
    )
    samples: Count = option(
        1000,
        "Number of resamples for 95% confidence intervals and for the comparison with production. "
        "0: neither.",
    )
    batch_size: Positive = option(64, "Rows per batch.")

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
