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
from regard.models.metrics import Rows
from regard.serving.contract import Contract, answer_kind, text_inputs

# Rows with new errors that change the meaning come first; the checks of numbers and names are the
# most reliable.
_WEIGHTS = {"number": 3, "name": 3, "omission": 1, "untranslated": 1}
_MAX_ROWS = 2_000
_PREFERRED = "chrf"  # meaningful for single sentences


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class RowDifference(_Model):
    """A row with other outputs or values of the two models.

    Attributes:
        row: its number in the tables of predictions.
        values: for each metric the value of the candidate and that of the other model; None if it
            is undefined for single rows.
        errors: the kinds of errors in the candidate's output, and in the other model's.
        slices: the numbers of its slices.
    """

    row: int
    values: dict[str, tuple[float | None, float | None]]
    errors: tuple[list[str], list[str]]
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
            (Cohen's d of paired samples); None if all are equal.
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
        slices: the titles of the slices.
    """

    FILE: ClassVar[str] = "row_differences.json"

    rows: list[RowDifference]
    different: int
    total: int
    metric: str
    metrics: dict[str, MetricDifference]
    slices: list[str]


def compare_rows(
    rows: Mapping[str, Rows],
    scores: Mapping[str, ModelScores],
    slices: Sequence[Slice],
    contract: Contract,
) -> RowDifferences | None:
    """Compare the candidate's outputs with those of the model in production, row by row.

    Args:
        rows: the outputs by model.
        scores: the scores by model, of the same rows.
        slices: the slices of the rows.
        contract: the contract of the candidate.

    Returns:
        The differences; None if there is no other model, or no metric of single rows.
    """
    if PRODUCTION not in rows:
        return None
    candidate, other = rows[CANDIDATE], rows[PRODUCTION]
    count = len(candidate.hypotheses)
    values = {
        name: list(
            zip(
                scores[CANDIDATE].row_values(name),
                scores[PRODUCTION].row_values(name),
                strict=True,
            )
        )
        for name in scores[CANDIDATE].metrics
    }
    metrics = {
        name: summary
        for name, pairs in values.items()
        if (summary := _summarize(scores[CANDIDATE], name, pairs)) is not None
    }
    if not metrics:
        return None
    chosen = _PREFERRED if _PREFERRED in metrics else next(iter(metrics))
    errors = _errors(candidate, other, contract)
    row_slices: list[list[int]] = [[] for _ in range(count)]
    for number, part in enumerate(slices):
        for row in part.rows:
            row_slices[row].append(number)
    differences = [
        RowDifference(
            row=row,
            values={name: _finite_pair(values[name][row]) for name in metrics},
            errors=errors[row],
            slices=row_slices[row],
        )
        for row in range(count)
        if candidate.hypotheses[row] != other.hypotheses[row]
        or any(values[name][row][0] != values[name][row][1] for name in metrics)
    ]
    sign = 1 if metrics[chosen].higher_is_better else -1
    differences.sort(key=lambda difference: _rank(difference, chosen, sign))
    return RowDifferences(
        rows=differences[:_MAX_ROWS],
        different=len(differences),
        total=count,
        metric=chosen,
        metrics=metrics,
        slices=[part.title for part in slices],
    )


def _rank(difference: RowDifference, metric: str, sign: int) -> tuple[int, float, int]:
    own, others = difference.errors
    new = max((_WEIGHTS.get(kind, 0) for kind in set(own).difference(others)), default=0)
    value, other = difference.values[metric]
    change = sign * (value - other) if value is not None and other is not None else 0.0
    return -new, change, difference.row


def _errors(candidate: Rows, other: Rows, contract: Contract) -> list[tuple[list[str], list[str]]]:
    """Return the errors in the outputs of both models; none if they are no texts."""
    count = len(candidate.hypotheses)
    if not answer_kind(contract).is_text:
        return [([], []) for _ in range(count)]
    inputs = text_inputs(contract)
    sources = candidate.columns[inputs[0]] if inputs else [""] * count
    kinds = set(ERROR_KINDS)
    if contract["task"] != "translation":  # a summary may copy, and omits on purpose
        kinds -= {"untranslated", "omission", "addition", "name"}
    errors = []
    for row, (output, other_output) in enumerate(
        zip(candidate.hypotheses, other.hypotheses, strict=True)
    ):
        own = find_errors(output, candidate.references[row], sources[row], kinds)
        others = own
        if other_output != output:
            others = find_errors(other_output, other.references[row], sources[row], kinds)
        errors.append((own, others))
    return errors


def _summarize(
    scores: ModelScores, name: str, pairs: Sequence[tuple[float, float]]
) -> MetricDifference | None:
    """Return the summary of a metric; None if it is undefined for all single rows."""
    metric = scores.metrics[name]
    changes = [value - other for value, other in pairs if math.isfinite(value - other)]
    if not changes:
        return None
    sign = 1 if metric.higher_is_better else -1
    deviation = statistics.pstdev(changes)
    mean = statistics.fmean(changes)
    return MetricDifference(
        label=metric.label,
        scale=metric.scale,
        higher_is_better=metric.higher_is_better,
        better=sum(sign * change > 0 for change in changes),
        worse=sum(sign * change < 0 for change in changes),
        equal=sum(change == 0 for change in changes),
        mean=mean,
        effect_size=mean / deviation if deviation else None,
    )


def _finite_pair(pair: tuple[float, float]) -> tuple[float | None, float | None]:
    own, other = (round(value, 4) if math.isfinite(value) else None for value in pair)
    return own, other
