"""How well the confidence of a model predicts which outputs are good, on the test split."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from regard.components.common import prediction_table
from regard.components.common.artifact_files import JsonFile
from regard.models import metrics
from regard.models.calibration import (
    ReliabilityBin,
    area_under_roc,
    expected_calibration_error,
    reliability,
)
from regard.models.metrics import Rows
from regard.serving.contract import Contract


class ConfidenceResult(JsonFile):
    """The calibration of the candidate on the rows with a confidence.

    Attributes:
        metric: the metric of a row.
        label: its display name.
        good: its lowest value of a good output.
        rows: the number of rows; blank inputs have no confidence.
        share: the share of good outputs.
        auroc: the area under the ROC curve of the confidence; None if all outputs are equally good.
        ece: the expected calibration error of the confidence.
        score_auroc: the area under the ROC curve of the mean log-probability of a token.
        score_ece: the expected calibration error of its exponential.
        bins: the bins that have rows.
    """

    FILE: ClassVar[str] = "confidence.json"

    metric: str
    label: str
    good: float
    rows: int
    share: float
    auroc: float | None
    ece: float
    score_auroc: float | None
    score_ece: float
    bins: list[ReliabilityBin]


def measure_confidence(table: Path, rows: Rows, contract: Contract) -> ConfidenceResult | None:
    """Compare the confidence of each row with its metric.

    Args:
        table: the table of predictions.
        rows: its outputs and references.
        contract: the contract of the model.

    Returns:
        The result; None if the model has no confidence, or no row has one.
    """
    entry = contract.get("confidence")
    if not entry or "metric" not in entry or entry["output"] not in rows.columns:
        return None
    confidence = np.array(rows.columns[entry["output"]], np.float64)
    numbers = np.flatnonzero(np.isfinite(confidence))
    if not len(numbers):
        return None
    confidence, rated = confidence[numbers], rows.take(numbers.tolist())
    scorer = metrics.scorers([entry["metric"]], rated)[entry["metric"]]
    labels = (scorer.row_values() >= entry["good"]).astype(np.float64)
    scores = np.array(prediction_table.read(table, ["score"])["score"], np.float64)[numbers]
    means = scores / np.array(rated.columns[_length_output(contract)], np.float64)
    return ConfidenceResult(
        metric=entry["metric"],
        label=scorer.metric(entry["metric"]).label,
        good=entry["good"],
        rows=len(numbers),
        share=float(labels.mean()),
        auroc=_finite(area_under_roc(confidence, labels)),
        ece=expected_calibration_error(confidence, labels),
        score_auroc=_finite(area_under_roc(means, labels)),
        score_ece=expected_calibration_error(np.exp(means), labels),
        bins=list(reliability(confidence, labels)),
    )


def _length_output(contract: Contract) -> str:
    """Return the output with the number of tokens of the output."""
    attention: Any = contract["looks"]
    return str(contract["signatures"][contract["detail"]]["outputs"][attention["rows"]][0])


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
