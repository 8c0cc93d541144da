"""The results of an evaluation, and the files that hold them.

``metrics.json`` holds an `Evaluation`, ``by_length.json`` a `LengthScores`, ``checks.json`` each
`DegenerateCheck` by name, and ``blessing.json`` a `Decision`.
"""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from regard.components.common.artifact_files import JsonFile
from regard.core.text_noise import kind_label
from regard.models.metrics.significance import Interval

CANDIDATE, PRODUCTION = "candidate", "production"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class MetricResult(_Model):
    """A metric of one model on all rows; see `regard.models.metrics.Metric`."""

    name: str
    label: str
    value: float
    signature: str
    higher_is_better: bool = True
    scale: float = 100.0
    interval: Interval | None = None


class SliceTest(_Model):
    """The significance test in one slice.

    Attributes:
        kind: the kind of the slice, such as ``length`` or a feature.
        name: its name; None for all remaining values of a feature.
        rows: the number of its rows.
        test: the test; None if there is none.
        samples: the number of samples.
        p_value: the p-value; None without a test, or if the metric is undefined.
        adjusted_p_value: the p-value adjusted by Holm's method.
    """

    kind: str
    name: str | None
    rows: int
    test: str | None
    samples: int
    p_value: float | None
    adjusted_p_value: float | None


class Comparison(_Model):
    """The significance tests of the candidate against the model in production.

    Attributes:
        metric: the compared metric.
        test: the test on all rows; None if there is none.
        samples: the number of samples.
        p_value: the p-value on all rows; None without a test, or if the metric is undefined.
        slices: the tests in slices.
        difference: the 95% interval of the difference on all rows; None without samples.
    """

    metric: str
    test: str | None
    samples: int
    p_value: float | None
    slices: tuple[SliceTest, ...] = ()
    difference: Interval | None = None


class ProductionResult(_Model):
    """The metrics of the model in production."""

    version: str | None = None
    path: str | None = None
    metrics: dict[str, MetricResult] = {}
    comparison: Comparison | None = None


class BaselineResult(_Model):
    """The metrics of a baseline.

    Attributes:
        name: the key in `regard.models.metrics.baselines.BASELINES`.
        label: the display name.
        metrics: the metrics by name.
        metric: the metric that the candidate is compared by; empty without a comparison.
        p_value: the p-value of the difference; None without a test.
    """

    name: str
    label: str
    metrics: dict[str, MetricResult]
    metric: str = ""
    p_value: float | None = None


class RobustnessResult(_Model):
    """The scores of the candidate with changed inputs.

    Attributes:
        kind: the kind of change.
        rows: the number of rows whose inputs differ.
        scores: the value of each metric; None if it is undefined.
        losses: how much worse each metric is than with clean inputs; negative if it is better.
        metric: the metric of the limit.
        limit: the maximum loss; None without one.
    """

    kind: str
    rows: int
    scores: dict[str, float | None]
    losses: dict[str, float | None]
    metric: str
    limit: float | None = None

    @property
    def label(self) -> str:
        """The kind in words."""
        return kind_label(self.kind)


class Evaluation(JsonFile):
    """The metrics of the candidate, of production and of baselines on all rows."""

    FILE: ClassVar[str] = "metrics.json"

    rows: int
    metrics: dict[str, MetricResult]
    production: ProductionResult | None = None
    baselines: list[BaselineResult] = []
    robustness: list[RobustnessResult] = []

    def __repr__(self) -> str:
        values = "".join(f", {name}={metric.value:.6g}" for name, metric in self.metrics.items())
        return f"Evaluation(rows={self.rows}{values})"


class LengthBucket(_Model):
    """The scores of rows whose length is from ``low`` to ``high``; None: no upper bound.

    ``intervals`` are those of the first metric, of the candidate and production.
    """

    low: int
    high: int | None
    rows: int
    scores: dict[str, dict[str, float]]
    intervals: dict[str, Interval | None] = {}


class LengthScores(JsonFile):
    """The scores by input length, in ``unit``."""

    FILE: ClassVar[str] = "by_length.json"

    unit: str
    buckets: list[LengthBucket]


class DegenerateExample(_Model):
    """A degenerate output; ``description`` is empty if the check's label says it all."""

    row: int
    source: str | None
    hypothesis: str
    reference: str
    description: str = ""


class DegenerateCheck(_Model):
    """The result of one check for degenerate outputs.

    Attributes:
        label: the end of "the outputs are", such as ``empty``.
        rows: the number of degenerate outputs.
        share: their share of all rows.
        limit: the allowed share.
        action: ``warn`` or ``fail``.
        examples: the worst outputs.
    """

    label: str
    rows: int
    share: float
    limit: float
    action: str
    examples: list[DegenerateExample] = []

    @property
    def is_over_limit(self) -> bool:
        """Whether there are more degenerate outputs than allowed."""
        return self.share > self.limit

    @property
    def summary(self) -> str:
        """The result as a clause."""
        share, limit = (f"{100 * value:.3g}%" for value in (self.share, self.limit))
        relation = "above" if self.is_over_limit else "within"
        return f"{share} of the outputs are {self.label}, {relation} the limit of {limit}"


class Verdict(_Model):
    """The result of one rule of the gate.

    Attributes:
        rule: the rule's name.
        passed: whether the rule allows the model to be pushed.
        reason: a clause that gives the reason, such as ``BLEU 33.1 is above the floor of 30.0``.
        metric: the metric; None if the rule is about something else.
        value: its value; None if it has none.
        bound: the value that it is compared with.
        slice: the slice, such as ``domain=news``; None: all rows.
        rows: the number of rows of the slice.
        key: the key of the configuration that sets the rule; None: there is none.
    """

    rule: str
    passed: bool
    reason: str
    metric: str | None = None
    value: float | None = None
    bound: float | None = None
    slice: str | None = None
    rows: int | None = None
    key: str | None = None


class Decision(JsonFile):
    """The decision of the gate, a sentence that explains it, and the verdicts behind it."""

    FILE: ClassVar[str] = "blessing.json"

    blessed: bool
    sentence: str
    verdicts: list[Verdict] = []
