"""Scores models on all rows and in slices, and tests the candidate against production."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from regard.components.evaluator.external_metrics import RowNumbers, metric_specs
from regard.components.evaluator.results import (
    CANDIDATE,
    PRODUCTION,
    BaselineResult,
    Comparison,
    MetricResult,
    SliceTest,
)
from regard.components.evaluator.slices import Slice
from regard.components.settings.evaluation import EvaluationConfig
from regard.core.errors import UserError
from regard.models import metrics
from regard.models.metrics import GoldAlignment, MetricOptions, Rows, significance
from regard.models.metrics.baselines import BASELINES
from regard.models.metrics.significance import Interval


def required_metrics(config: EvaluationConfig) -> list[str]:
    """Return the configured metrics, and those that thresholds and the comparison need."""
    thresholds = [config.thresholds, *config.slices.thresholds.values()]
    needed = [name for threshold in thresholds for name in threshold]
    needed += [config.production.metric] if config.production else []
    return list(dict.fromkeys([*config.metrics, *needed]))


def check_metrics(rows: Rows, config: EvaluationConfig) -> None:
    """Check that all metrics exist and score such outputs.

    Raises:
        UserError: one does not.
    """
    specs = metric_specs(config)
    try:
        for name in required_metrics(config):
            metrics.get_metric(name, rows.output_kind, specs)
    except ValueError as error:
        raise UserError(str(error), where="evaluation") from error


class ModelScores:
    """The metrics of one model's outputs; every row is read once per metric.

    Args:
        rows: the outputs and the references.
        config: the ``evaluation`` section.
        with_attention: whether the rows have attention weights, without which some metrics are left
            out.
        numbers: the numbers of external metrics, if their commands have run.

    Attributes:
        metrics: the metrics of all rows, by name.

    Raises:
        UserError: a metric or the tokenizer is unknown, a metric does not score such outputs, or
            there are no rows.
    """

    def __init__(
        self,
        rows: Rows,
        config: EvaluationConfig,
        with_attention: bool = True,
        numbers: RowNumbers | None = None,
    ):
        names = required_metrics(config)
        if not with_attention:
            names = [name for name in names if not metrics.needs_attention(name)]
        alignment = GoldAlignment(**config.alignment.model_dump()) if config.alignment else None
        options = MetricOptions(config.tokenize, config.lowercase, alignment)
        try:
            self._scorers = metrics.scorers(names, rows, options, metric_specs(config, numbers))
            self.metrics = {name: scorer.metric(name) for name, scorer in self._scorers.items()}
        except ValueError as error:
            raise UserError(str(error), where="evaluation") from error

    def results(self, samples: int) -> dict[str, MetricResult]:
        """Return the metrics with confidence intervals, if there are ``samples``."""
        results = {}
        for name, scorer in self._scorers.items():
            interval = significance.confidence_interval(scorer, samples) if samples else None
            results[name] = MetricResult(**vars(self.metrics[name]), interval=interval)
        return results

    def subset_values(self, rows: Sequence[int]) -> dict[str, float]:
        """Return the values of the metrics on some rows."""
        return {name: scorer.subset_value(rows) for name, scorer in self._scorers.items()}

    def row_values(self, name: str) -> list[float]:
        """Return the values of a metric on each row alone; NaN where there is none."""
        return self._scorers[name].row_values().tolist()

    def first_interval(self, rows: Sequence[int], samples: int) -> Interval | None:
        """Return the interval of the first metric on some rows, if there are ``samples``."""
        if not samples:
            return None
        scorer = self._scorers[next(iter(self.metrics))]
        return significance.confidence_interval(scorer.take(rows), samples)

    def p_value(
        self,
        other: ModelScores,
        name: str,
        test: significance.Test,
        samples: int,
        rows: Sequence[int] | None = None,
    ) -> float | None:
        """Return the p-value of a metric's difference to another model, on all or some rows."""
        scorer, other_scorer = self._scorers[name], other._scorers[name]
        if rows is not None:
            scorer, other_scorer = scorer.take(rows), other_scorer.take(rows)
        return significance.p_value(scorer, other_scorer, test, samples)

    def difference_interval(self, other: ModelScores, name: str, samples: int) -> Interval | None:
        """Return the interval of a metric's difference to another model, if there are samples."""
        if not samples:
            return None
        scorers = self._scorers[name], other._scorers[name]
        return significance.difference_interval(*scorers, samples)


def score_slices(scores: Mapping[str, ModelScores], slices: Sequence[Slice]) -> list[Slice]:
    """Score every model in each slice."""
    scored = []
    for part in slices:
        values = {
            model: model_scores.subset_values(part.rows) for model, model_scores in scores.items()
        }
        scored.append(dataclasses.replace(part, scores=values))
    return scored


def compare(
    scores: Mapping[str, ModelScores], slices: Sequence[Slice], config: EvaluationConfig
) -> Comparison | None:
    """Test the candidate against the model in production.

    The tests of slices form one family: their p-values are adjusted by Holm's method, so that the
    probability of a false alarm in any slice is at most the significance level. They always use
    randomization, because the bootstrap is too confident with few rows. The test of all rows is
    separate, at the level itself.

    Args:
        scores: the scores by model, of the same rows.
        slices: the slices of the rows; the configured ones are compared.
        config: the ``evaluation`` section.

    Returns:
        The tests; None if there is no model in production, or no comparison with it.
    """
    production = config.production
    if production is None or PRODUCTION not in scores:
        return None
    candidate, other = scores[CANDIDATE], scores[PRODUCTION]
    slices = [part for part in slices if any(map(part.matches, production.slices))]
    name, test, samples = production.metric, production.test, config.samples
    slice_test: significance.Test | None = None
    p_value, slice_samples = None, 0
    p_values: list[float | None] = [None] * len(slices)
    if test and samples:
        p_value, slice_test = candidate.p_value(other, name, test, samples), "randomization"
        # With fewer samples the lowest p-value times the number of slices would exceed the level.
        slice_samples = max(samples, math.ceil(len(slices) / production.significance))
        p_values = [
            candidate.p_value(other, name, slice_test, slice_samples, part.rows) for part in slices
        ]
    adjusted = iter(significance.holm([p for p in p_values if p is not None]))
    tests = [
        SliceTest(
            kind=part.kind,
            name=part.name,
            rows=len(part.rows),
            test=slice_test,
            samples=slice_samples,
            p_value=p,
            adjusted_p_value=None if p is None else next(adjusted),
        )
        for part, p in zip(slices, p_values, strict=True)
    ]
    return Comparison(
        metric=name,
        test=test,
        samples=samples,
        p_value=p_value,
        slices=tuple(tests),
        difference=candidate.difference_interval(other, name, samples),
    )


def compare_baselines(
    scores: Mapping[str, ModelScores], config: EvaluationConfig
) -> list[BaselineResult]:
    """Return the metrics of the baselines.

    Without a model in production, the candidate is tested against each of them by randomization,
    with the first metric that is defined for both: that of the comparison with production, or one
    of ``metrics``.

    Args:
        scores: the scores by model or baseline, of the same rows.
        config: the ``evaluation`` section.
    """
    candidate, results = scores[CANDIDATE], []
    for name in config.baselines:
        baseline, metric, p_value = scores[name], "", None
        if PRODUCTION not in scores:
            metric = _first_common_metric(candidate, baseline, config)
        if metric and config.samples:
            p_value = candidate.p_value(baseline, metric, "randomization", config.samples)
        label, figures = BASELINES[name].label, baseline.results(samples=0)  # without intervals
        results.append(
            BaselineResult(name=name, label=label, metrics=figures, metric=metric, p_value=p_value)
        )
    return results


def _first_common_metric(
    candidate: ModelScores, baseline: ModelScores, config: EvaluationConfig
) -> str:
    """Return the preferred metric that is defined for both models; empty if there is none."""
    preferred = [config.production.metric] if config.production else []
    for name in [*preferred, *config.metrics]:
        pair = candidate.metrics.get(name), baseline.metrics.get(name)
        if all(metric is not None and metric.is_defined for metric in pair):
            return name
    return ""
