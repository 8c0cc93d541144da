"""Scores models on all rows and in slices, and tests the candidate against production."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from regard.components.common.errors import UserError
from regard.components.evaluator.results import (
    Comparison,
    IntervalResult,
    MetricResult,
    ScoresByModel,
    SliceTest,
)
from regard.components.evaluator.slices import Slice
from regard.components.settings.evaluation import EvaluationConfig, ProductionComparisonConfig
from regard.models import metrics
from regard.models.metrics import GoldAlignment, MetricOptions, Rows, significance


def required_metrics(config: EvaluationConfig) -> list[str]:
    """Return the configured metrics, and those that thresholds and the comparison need."""
    thresholds = [config.thresholds, *config.slices.thresholds.values()]
    needed = [name for threshold in thresholds for name in threshold]
    needed += [config.production.metric] if config.production else []
    return list(dict.fromkeys([*config.metrics, *needed]))


class ModelScores:
    """The metrics of one model's outputs; every row is read once per metric.

    Args:
        rows: the outputs and the references.
        config: the ``evaluation`` section.

    Attributes:
        metrics: the metrics of all rows, by name.

    Raises:
        UserError: a metric or the tokenizer is unknown, a metric does not score such outputs, or
            there are no rows.
    """

    def __init__(self, rows: Rows, config: EvaluationConfig):
        names = required_metrics(config)
        try:
            for name in names:
                metrics.get_metric(name, rows.output_kind if rows.hypotheses else None)
        except ValueError as error:
            raise UserError(str(error), where="evaluation.metrics") from error
        try:
            self._scorers = metrics.scorers(names, rows, _metric_options(config))
            self.metrics = {name: scorer.metric(name) for name, scorer in self._scorers.items()}
        except ValueError as error:
            raise UserError(str(error), where="evaluation") from error

    def results(self, samples: int) -> dict[str, MetricResult]:
        """Return the metrics with confidence intervals, if there are ``samples``."""
        results = {}
        for name, scorer in self._scorers.items():
            interval = significance.confidence_interval(scorer, samples) if samples else None
            results[name] = MetricResult(
                **dataclasses.asdict(self.metrics[name]),
                interval=IntervalResult(**dataclasses.asdict(interval)) if interval else None,
            )
        return results

    def subset_values(self, rows: Sequence[int]) -> dict[str, float]:
        """Return the values of the metrics on some rows."""
        return {name: scorer.subset_value(rows) for name, scorer in self._scorers.items()}

    def p_value(
        self,
        other: ModelScores,
        name: str,
        test: significance.Test,
        samples: int,
        rows: Sequence[int] | None = None,
    ) -> float | None:
        """Return the p-value of a metric's difference to another model, on all or some rows."""
        one, two = self._scorers[name], other._scorers[name]
        if rows is not None:
            one, two = one.take(rows), two.take(rows)
        return significance.p_value(one, two, test, samples)


@dataclasses.dataclass(frozen=True)
class ScoredSlice:
    """A slice with the values of every model's metrics."""

    slice: Slice
    scores: ScoresByModel


def score_slices(scores: Mapping[str, ModelScores], slices: Sequence[Slice]) -> list[ScoredSlice]:
    """Score every model in each slice."""
    return [
        ScoredSlice(one, {model: own.subset_values(one.rows) for model, own in scores.items()})
        for one in slices
    ]


def compared_slices(slices: Sequence[Slice], config: EvaluationConfig) -> list[Slice]:
    """Return the slices in which the candidate is compared with production."""
    names = config.production.slices if config.production else ()
    return [one for one in slices if any(map(one.matches, names))]


def compare(
    candidate: ModelScores,
    production: ModelScores,
    config: ProductionComparisonConfig,
    samples: int,
    slices: Sequence[Slice] = (),
) -> Comparison:
    """Test the candidate against the model in production.

    The tests of slices form one family: their p-values are adjusted by Holm's method, so that the
    probability of a false alarm in any slice is at most the significance level. They always use
    randomization, because the bootstrap is too confident with few rows. The test of all rows is
    separate, at the level itself.

    Args:
        candidate: the candidate's scores.
        production: the scores of the model in production on the same rows.
        config: the section ``evaluation.production``.
        samples: the number of samples; 0: no tests.
        slices: the slices in which the models are compared too.
    """
    name, test = config.metric, config.test
    if not test or not samples:
        tests = [_slice_test(one, None, 0, None) for one in slices]
        return Comparison(
            metric=name, test=test, samples=samples, p_value=None, slices=tuple(tests)
        )
    # With fewer samples the lowest p-value times the number of slices would exceed the level.
    slice_samples = max(samples, math.ceil(len(slices) / config.significance))
    p_values = [
        candidate.p_value(production, name, "randomization", slice_samples, one.rows)
        for one in slices
    ]
    adjusted = iter(significance.holm([p for p in p_values if p is not None]))
    return Comparison(
        metric=name,
        test=test,
        samples=samples,
        p_value=candidate.p_value(production, name, test, samples),
        slices=tuple(
            _slice_test(
                one, "randomization", slice_samples, p, None if p is None else next(adjusted)
            )
            for one, p in zip(slices, p_values, strict=True)
        ),
    )


def _slice_test(
    one: Slice,
    test: str | None,
    samples: int,
    p_value: float | None,
    adjusted: float | None = None,
) -> SliceTest:
    return SliceTest(
        kind=one.kind,
        name=one.name,
        rows=len(one.rows),
        test=test,
        samples=samples,
        p_value=p_value,
        adjusted_p_value=adjusted,
    )


def _metric_options(config: EvaluationConfig) -> MetricOptions:
    alignment = GoldAlignment(**config.alignment.model_dump()) if config.alignment else None
    return MetricOptions(config.tokenize, config.lowercase, alignment)
