"""The sections ``evaluation`` and ``serving``: when a model is good enough, and where it goes."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from models.metrics import METRICS
from models.settings.base import Listed, Positive, Section, Share
from pipeline.config.data import Check, CheckSet

_METRICS = ", ".join(METRICS)


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        told = {"reason": str(error)}
        raise PydanticCustomError("pattern", "no regular expression: {reason}", told) from None
    return pattern


class Production(Section):
    """The comparison with the model in production.

    A model is worse where its metric is by more than the tolerance, and the test does not take the
    difference for chance.
    """

    metric: str = Field(default="bleu", description="The metric that is compared.")
    tolerance: Annotated[float, Field(ge=0.0)] = Field(
        default=0.0, description="By how much the candidate may be worse, in the metric's own unit."
    )
    test: Literal["bootstrap", "randomization"] | None = Field(
        default="randomization",
        description="How a loss is told from chance: randomization lets the models change places "
        "(Riezler and Maxwell 2005), bootstrap draws rows with replacement (Koehn 2004), which "
        "wants some hundred rows and is for all rows alone, not for slices; null: every loss "
        "counts.",
    )
    significance: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        default=0.05,
        description="A loss that chance would give at least so often is taken for chance.",
    )
    slices: Listed[str] = Field(
        default=(),
        description="Slices in each of which the candidate must not be worse either, such as "
        "domain=news or length=31+; a name alone, such as domain, means all of its slices. Their "
        "test, where there is one, is randomization, whatever that of all rows is, and their "
        "p-values are adjusted together by Holm's method (1979), so that chance does not refuse "
        "more models where there are more slices. Where the metric is undefined in so few rows a "
        "loss is taken for chance.",
        examples=[["length", "domain=news"]],
    )


class RatioCheck(Check):
    """Answers that are much longer or shorter than every reference."""

    ratio: Annotated[float, Field(gt=1.0)] = Field(
        default=2.5, description="Characters of the longer one for one of the shorter one."
    )
    limit: Share = Field(default=0.05, description="Share of such answers that is still fine.")


class AnswerChecks(CheckSet):
    """What is looked for in answers that are texts; `fail`: such a model is not pushed."""

    empty: Check = Field(default=Check(limit=0.01), description="Nothing is written.")
    copies: Check = Field(default=Check(limit=0.05), description="The source once more.")
    loops: Check = Field(
        default=Check(limit=0.01), description="A phrase three times in a row, or more often."
    )
    length_ratio: RatioCheck = Field(
        default=RatioCheck(), description="Much longer or shorter than every reference."
    )
    script: Check = Field(
        default=Check(limit=0.01), description="Letters that no reference has, nor the source."
    )


class Pattern(Section):
    """Rows in which something stands."""

    feature: str = Field(description="The feature that is looked at.")
    matches: Annotated[str, AfterValidator(_compiles)] = Field(
        description="A regular expression that is found anywhere in it.", examples=[r"\?$"]
    )


class Slices(Section):
    """Parts of the test split that are scored apart, besides those by length."""

    by: Listed[str] = Field(
        default=(),
        description="Features of text whose values make parts, such as a column of data.extra; the "
        "30 most frequent values, and what is left.",
    )
    patterns: dict[str, Pattern] = Field(
        default_factory=dict, description="Parts by what stands in a feature, with their names."
    )
    oov: Listed[Share] | None = Field(
        default=(0.0, 0.1),
        description="Where a model reads text: upper bounds of the share of its words that the "
        "train split does not have; of over 50,000 words, those that are not among the 50,000 most "
        "frequent. null: no such parts.",
    )
    seen: bool = Field(
        default=True,
        description="Where a model writes text: the rows of which a reference is a target of train "
        "too (seen=yes), and the others (seen=no); data.checks.target_overlap finds them. A model "
        "in production may have seen others.",
    )
    floors: dict[str, dict[str, float]] = Field(
        default_factory=dict,
        description="As evaluation.floors, of one part: domain=news, pattern=questions, "
        "length=0-10, oov=0.1+, seen=no; or of all parts of one kind: domain.",
        examples=[{"domain=news": {"bleu": 25.0}}],
    )


class Alignment(Section):
    """Gold links between the words of the test split, by which AER is measured."""

    gold: str = Field(
        description="The column of data.extra with the links in Pharaoh's form, 0-0 1-2 2p3: "
        "source, then target, from 0; p for a link that is only possible.",
        examples=["links"],
    )
    unit: Literal["word", "character"] = Field(default="word", description="What the links count.")
    layer: Positive | None = Field(
        default=None,
        description="The layer of a Transformer's decoder whose attention is measured, from 1; "
        "null: the one that the model shows, which is its last.",
    )
    head: Positive | None = Field(
        default=None, description="Its head, from 1; null: the mean of all its heads."
    )

    def heads_json(self) -> str:
        """``layer`` and ``head`` as JSON, which is all of it that concerns the model."""
        return self.model_dump_json(include={"layer", "head"})


class Evaluation(Section):
    """What the test split is measured by, and what a model must reach to be pushed."""

    metrics: Listed[str] = Field(
        default=("bleu", "chrf", "exact_match"),
        description=f"What is computed on the test split, of what fits the task: {_METRICS}. "
        "bleu_lc is BLEU without regard to case, as many papers give it.",
    )
    tokenize: Literal["13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "none"] = Field(
        default="13a", description="sacreBLEU's tokenization for BLEU; zh for Chinese targets."
    )
    baseline: Literal["lead_1", "lead_3", "copy"] | None = Field(
        default=None,
        description="What needs no model is measured beside it: lead_1 and lead_3 answer with the "
        "first sentences of the input, copy with the whole of it.",
    )
    lowercase: bool = Field(default=False, description="Whether the metrics ignore case.")
    length_buckets: Listed[Positive] = Field(
        default=(10, 20, 30),
        description="Upper bounds of the lengths of inputs (in pieces, or points) that are scored "
        "apart.",
    )
    slices: Slices = Field(
        default=Slices(), description="Other parts of the test split that are scored apart."
    )
    alignment: Alignment | None = Field(
        default=None,
        description="What the metric aer holds the model's attention against, which it shows for "
        "the reference. null: nothing is known.",
    )
    floors: dict[str, float] = Field(
        default_factory=dict,
        description="The least value of a metric for a model to be pushed, or the greatest where "
        "lower is better. BLEU, chrF, TER and ROUGE go from 0 to 100, exact_match from 0 to 1.",
        examples=[{"bleu": 30.0}],
    )
    production: Production | None = Field(
        default=Production(),
        description="A model must not be worse than the one in production, where there is one; "
        "null: no comparison. Its metric is the first of metrics where it is not given.",
    )
    checks: AnswerChecks = Field(
        default=AnswerChecks(), description="Answers that are wrong in ways that metrics hide."
    )
    samples: Annotated[int, Field(ge=0)] = Field(
        default=1000,
        description="Samples of the test split, for the intervals with 95% of them that stand "
        "beside the metrics, and for the test against the model in production. 0: neither.",
    )
    batch_size: Positive = Field(default=64, description="Rows that are answered at once.")

    @model_validator(mode="before")
    @classmethod
    def _compare_by_first_metric(cls, value: Any) -> Any:
        metrics = value.get("metrics") if isinstance(value, dict) else None
        production = value.get("production", {}) if isinstance(value, dict) else None
        if not isinstance(metrics, list | tuple) or not isinstance(production, dict):
            return value
        if metrics and metrics[0] in METRICS:
            return {**value, "production": {"metric": metrics[0], **production}}
        return value


class Serving(Section):
    """Where a blessed model goes, and what it must run on."""

    registry: str | None = Field(
        default=None,
        description="Folder of the served models, <registry>/<name>/<version>; null: "
        "${REGARD_HOME}/registry.",
    )
    tf_serving: Listed[Annotated[str, Field(pattern=r"^\d+\.\d+(\.\d+)?$")]] = Field(
        default=("2.19", "2.20"),
        description="Versions of TensorFlow Serving whose ops alone the model may use.",
    )
    check_rows: Positive = Field(
        default=32,
        description="Rows of the test split that the exported model is asked for the check.",
    )
