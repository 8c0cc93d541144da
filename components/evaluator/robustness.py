"""The scores of changed inputs, and what the model loses by each change."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from regard.components.common import prediction_table
from regard.components.evaluator.gate import format_distinctly
from regard.components.evaluator.predictions import read_rows
from regard.components.evaluator.results import RobustnessResult, Verdict
from regard.components.evaluator.scoring import ModelScores
from regard.components.settings.evaluation import EvaluationConfig
from regard.core.errors import DataError, UserError
from regard.core.formatting import metric_digits
from regard.core.text_noise import noisy_features
from regard.models.metrics import Metric, Rows, suits_changed_inputs
from regard.models.tasks import describe
from regard.serving.contract import Contract


def score_robustness(
    source: Path,
    contract: Contract,
    rows: Rows,
    clean: Mapping[str, Metric],
    config: EvaluationConfig,
) -> list[RobustnessResult]:
    """Score the outputs for each kind of changed inputs; none without ``robustness``.

    Metrics that read attention or that commands compute are left out.

    Args:
        source: the folder with the tables of predictions.
        contract: the model's contract.
        rows: the outputs for the clean inputs.
        clean: the metrics of ``rows``.
        config: the ``evaluation`` section.

    Raises:
        UserError: there are no predictions for a kind.
    """
    robustness = config.robustness
    if robustness is None:
        return []
    names = [name for name in config.metrics if suits_changed_inputs(name)]
    if not names:
        message = "No metric can be computed for changed inputs."
        remedy = "Add a metric that needs neither attention nor a command, such as chrf."
        raise UserError(message, "evaluation.metrics", remedy)
    metric = robustness.metric or names[0]
    if metric not in names:
        message = f"{metric} is not computed for changed inputs."
        raise UserError(message, "evaluation.robustness.metric", f"Use {' or '.join(names)}.")
    slices = config.slices.model_copy(update={"thresholds": {}})
    reduced = config.model_copy(
        update={"metrics": names, "thresholds": {}, "production": None, "slices": slices}
    )
    features = _features(contract)
    results = []
    for kind in robustness.measured_kinds:
        path = source / prediction_table.robustness_table(kind)
        if not path.is_file():
            message = f"The predictions have no outputs for the changed inputs {kind}."
            remedy = "Give Predictor and Evaluator the same section evaluation."
            raise DataError(message, "evaluation.robustness", remedy)
        changed = read_rows(path, contract)
        scores = ModelScores(changed, reduced, with_attention=False).metrics
        values = {name: metric.value for name, metric in scores.items()}
        pairs = zip(*(_inputs(side, features) for side in (rows, changed)), strict=True)
        results.append(
            RobustnessResult(
                kind=kind,
                rows=sum(before != after for before, after in pairs),
                scores={name: _finite(value) for name, value in values.items()},
                losses={name: _finite(_loss(clean[name], value)) for name, value in values.items()},
                metric=metric,
                limit=robustness.max_loss.get(kind),
            )
        )
    return results


def check_robustness(
    results: Sequence[RobustnessResult], clean: Mapping[str, Metric]
) -> list[Verdict]:
    """Check that a model loses no more by a change than ``robustness.max_loss`` allows.

    Args:
        results: the scores of changed inputs.
        clean: the metrics of the clean inputs.
    """
    verdicts = []
    for result in results:
        if result.limit is None:
            continue
        metric, loss = clean[result.metric], result.losses[result.metric]
        subject = f"the loss of {metric.label} by {result.label}"
        if loss is None:
            passed, reason = False, f"{subject} is undefined"
        else:
            passed = loss <= result.limit
            texts = format_distinctly(loss, result.limit, metric_digits(metric.scale))
            relation = "within" if passed else "above"
            reason = f"{subject}, {texts[0]}, is {relation} the limit of {texts[1]}"
        verdicts.append(
            Verdict(
                rule="robustness",
                passed=passed,
                reason=reason,
                metric=metric.name,
                value=loss,
                bound=result.limit,
                rows=result.rows,
                key=f"evaluation.robustness.max_loss.{result.kind}",
            )
        )
    return verdicts


def _features(contract: Contract) -> list[str]:
    """Return the inputs of a model that change."""
    inputs = {entry["name"] for entry in contract["inputs"]}
    return [name for name in noisy_features(describe(contract["task"]).features) if name in inputs]


def _inputs(rows: Rows, features: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the inputs of each row that change."""
    return list(zip(*(rows.columns[name] for name in features), strict=True))


def _loss(clean: Metric, value: float) -> float:
    """Return how much worse a value is than that of clean inputs; negative if it is better."""
    loss = clean.value - value
    return loss if clean.higher_is_better else -loss


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
