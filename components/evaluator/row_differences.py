"""Where two models differ: for each row the metrics and the errors of both outputs.

``row_differences.json`` holds a `RowDifferences`; a page of the report shows it.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from regard.components.common.artifact_files import JsonFile
from regard.components.evaluator.output_errors import ERROR_KINDS, find_errors
from regard.components.evaluator.results import CANDIDATE, PRODUCTION
from regard.components.evaluator.scoring import ModelScores
from regard.components.evaluator.slices import Slice
from regard.components.settings.evaluation import EvaluationConfig
from regard.models.metrics import METRICS, Metric, MetricOptions, Rows, needs_attention
from regard.models.metrics.scorer import Scorer
from regard.serving.contract import Contract, answer_kind, text_inputs

# Rows with new errors that change the meaning come first; the checks of numbers and names are the
# most reliable.
_WEIGHTS = {"number": 3, "name": 3, "omission": 1, "untranslated": 1}
_MAX_ROWS = 2_000
_MIN_DEVIATION = 1e-9  # of a metric's scale; less is rounding
_MODELS = (CANDIDATE, PRODUCTION)
# The kinds of errors in the candidate's output, and in the other model's.
ErrorPair = tuple[list[str], list[str]]
_PREFERRED = "chrf"  # meaningful for single sentences


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class RowDifference(_Model):
    """A row for which the two models have other outputs.

    Attributes:
        row: its number in the tables of predictions.
        values: for each metric the value of the candidate and that of the other model; None if it
            is undefined for single rows.
        errors: the kinds of errors in the candidate's output, and in the other model's.
        slices: the numbers of its slices.
    """

    row: int
    values: dict[str, tuple[float | None, float | None]]
    errors: ErrorPair
    slices: list[int]


class MetricDifference(_Model):
    """A metric's differences of single rows, candidate minus the other model.

    Attributes:
        label: the display name.
        scale: 100 for percentages, otherwise 1.
        higher_is_better: whether a larger value means a better output.
        better: rows on which the candidate is better.
        worse: rows on which it is worse.
        equal: rows with equal values.
        mean: the mean difference.
        effect_size: the mean difference divided by the standard deviation of the differences
            (Cohen 1988, §2.3.5, d_z of paired samples); None if all differences are equal.
    """

    label: str
    scale: float
    higher_is_better: bool
    better: int
    worse: int
    equal: int
    mean: float
    effect_size: float | None


class RowDifferences(JsonFile, _Model):
    """The rows on which two models differ, the likely regressions first.

    Attributes:
        rows: the rows; those without a new error that changes the meaning are sorted by the
            difference of ``metric``.
        different: how many rows differ; more than ``rows`` if these are too many.
        total: the number of all rows.
        metric: the metric that sorts them.
        metrics: the metrics by name.
        errors: by kind, on how many rows only the candidate has an error of it, and only the other
            model.
        slices: the titles of the slices.
    """

    FILE: ClassVar[str] = "row_differences.json"

    rows: list[RowDifference]
    different: int
    total: int
    metric: str
    metrics: dict[str, MetricDifference]
    errors: dict[str, tuple[int, int]]
    slices: list[str]


def compare_rows(
    rows: Mapping[str, Rows],
    scores: Mapping[str, ModelScores],
    slices: Sequence[Slice],
    contract: Contract,
    config: EvaluationConfig,
) -> RowDifferences | None:
    """Compare the candidate's outputs with those of the model in production, row by row.

    Args:
        rows: the outputs by model.
        scores: the scores by model, of the same rows.
        slices: the slices of the rows.
        contract: the contract of the candidate.
        config: the ``evaluation`` section.

    Returns:
        The differences; None if there is no other model, or no metric of single rows.
    """
    if PRODUCTION not in rows:
        return None
    candidate, other = rows[CANDIDATE], rows[PRODUCTION]
    values = _row_values(rows, scores, config)
    metrics = {
        name: summary
        for name, (metric, pairs) in values.items()
        if (summary := _summarize(metric, pairs)) is not None
    }
    if not metrics:
        return None
    chosen = _PREFERRED if _PREFERRED in metrics else next(iter(metrics))
    numbers = [
        row for row, output in enumerate(candidate.hypotheses) if output != other.hypotheses[row]
    ]
    errors = _errors(candidate, other, numbers, contract)
    row_slices: dict[int, list[int]] = {row: [] for row in numbers}
    for number, part in enumerate(slices):
        for row in part.rows:
            if row in row_slices:
                row_slices[row].append(number)
    differences = [
        RowDifference(
            row=row,
            values={name: _finite_pair(values[name][1][row]) for name in metrics},
            errors=errors[row],
            slices=row_slices[row],
        )
        for row in numbers
    ]
    sign = 1 if metrics[chosen].higher_is_better else -1
    differences.sort(key=lambda difference: _rank(difference, chosen, sign))
    return RowDifferences(
        rows=differences[:_MAX_ROWS],
        different=len(differences),
        total=len(candidate.hypotheses),
        metric=chosen,
        metrics=metrics,
        errors=_count_errors(list(errors.values())),
        slices=[part.title for part in slices],
    )


def _row_values(
    rows: Mapping[str, Rows], scores: Mapping[str, ModelScores], config: EvaluationConfig
) -> dict[str, tuple[Metric, list[tuple[float, float]]]]:
    """Return the values of the metrics that suit single rows, for the candidate and the other.

    BLEU does not: a short text without a common phrase of four words has 0. Texts have chrF.
    """
    names = [
        name
        for name in scores[CANDIDATE].metrics
        if not (needs_attention(name) or name.startswith("bleu"))
    ]
    values = {
        name: (
            scores[CANDIDATE].metrics[name],
            [*zip(*(scores[model].row_values(name) for model in _MODELS), strict=True)],
        )
        for name in names
    }
    if _PREFERRED not in values and rows[CANDIDATE].output_kind.is_text:
        options = MetricOptions(lowercase=config.lowercase)
        scorers = [Scorer(METRICS[_PREFERRED], rows[model], options) for model in _MODELS]
        pairs = [*zip(*(scorer.row_values().tolist() for scorer in scorers), strict=True)]
        values[_PREFERRED] = (scorers[0].metric(_PREFERRED), pairs)
    return values


def _count_errors(errors: Sequence[ErrorPair]) -> dict[str, tuple[int, int]]:
    """Count the outputs with an error of each kind that the other model's output does not have."""
    counts = {}
    for kind in ERROR_KINDS:
        new = sum(kind in own and kind not in others for own, others in errors)
        fixed = sum(kind in others and kind not in own for own, others in errors)
        if any(kind in own or kind in others for own, others in errors):
            counts[kind] = (new, fixed)
    return counts


def _rank(difference: RowDifference, metric: str, sign: int) -> tuple[int, float, int]:
    own, others = difference.errors
    kinds = set(own).difference(others)
    if "addition" in own:  # often a free translation
        kinds.discard("omission")
    new = max((_WEIGHTS.get(kind, 0) for kind in kinds), default=0)
    value, other = difference.values[metric]
    change = sign * (value - other) if value is not None and other is not None else 0.0
    return -new, change, difference.row


def _errors(
    candidate: Rows, other: Rows, numbers: Sequence[int], contract: Contract
) -> dict[int, ErrorPair]:
    """Return the errors in the outputs of both models by row; none if they are no texts."""
    if not answer_kind(contract).is_text:
        return {row: ([], []) for row in numbers}
    inputs = text_inputs(contract)
    kinds = set(ERROR_KINDS)
    if contract["task"] != "translation":  # a summary may copy, and omits on purpose
        kinds -= {"untranslated", "omission", "addition", "name"}
    errors = {}
    for row in numbers:
        source = candidate.columns[inputs[0]][row] if inputs else ""
        own, others = (
            find_errors(model.hypotheses[row], model.references[row], source, kinds)
            for model in (candidate, other)
        )
        errors[row] = (own, others)
    return errors


def _summarize(metric: Metric, pairs: Sequence[tuple[float, float]]) -> MetricDifference | None:
    """Return the summary of a metric; None if it is undefined for all single rows."""
    changes = [value - other for value, other in pairs if math.isfinite(value - other)]
    if not changes:
        return None
    sign = 1 if metric.higher_is_better else -1
    mean = statistics.fmean(changes)
    deviation = statistics.stdev(changes) if len(changes) > 1 else 0.0
    is_spread = deviation > _MIN_DEVIATION * metric.scale
    return MetricDifference(
        label=metric.label,
        scale=metric.scale,
        higher_is_better=metric.higher_is_better,
        better=sum(sign * change > 0 for change in changes),
        worse=sum(sign * change < 0 for change in changes),
        equal=sum(change == 0 for change in changes),
        mean=mean,
        effect_size=mean / deviation if is_spread else None,
    )


def _finite_pair(pair: tuple[float, float]) -> tuple[float | None, float | None]:
    own, other = (round(value, 4) if math.isfinite(value) else None for value in pair)
    return own, other
