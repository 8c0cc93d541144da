"""The Evaluator's work: score candidate and production on the same rows, and decide."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tfx.components.evaluator import constants
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact

from components import events, predictions
from components.errors import UserError
from components.evaluator import blessing as rules
from components.evaluator import degeneration, scoring
from components.evaluator.answers import answered, baseline, text_files
from components.files import atomic_write
from models import metrics
from models.metrics import Metric, Rows
from models.metrics.baselines import BASELINES

NODE = "Evaluator"
METRICS = "metrics.json"
BY_LENGTH = "by_length.json"
CHECKS = "checks.json"
SLICES = "slices.json"
BLESSING = "blessing.json"


class EvaluatorExecutor(BaseExecutor):
    """Writes the evaluation, and the blessing in TFX's own form with its reasons.

    The evaluation is ``metrics.json`` with intervals and the comparison, ``by_length.json``,
    ``slices.json``, of texts ``checks.json``, and the answers and references as plain text.
    """

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Scores and blesses; a model that is not blessed is no error."""
        source = Path(artifact_utils.get_single_uri(input_dict["predictions"]))
        evaluation = Path(artifact_utils.get_single_uri(output_dict["evaluation"]))
        blessing = artifact_utils.get_single_instance(output_dict["blessing"])
        config = json.loads(exec_properties["config"])

        summary = predictions.read_summary(source)
        contract = summary["contract"]
        names = scoring.wanted_metrics(config)
        looks = any(metrics.looks(name) for name in names)
        candidate = answered(source / predictions.CANDIDATE, contract, looks)
        if not candidate.hypotheses:
            raise UserError(
                "the test split has no rows, so the model cannot be evaluated",
                remedy="Give `data.test` more rows, or raise `data.split.test`.",
            )
        models = {"candidate": candidate}
        if config.get("baseline"):
            models["baseline"] = baseline(candidate, contract, config["baseline"])
        if summary["production"]:
            models["production"] = answered(source / predictions.PRODUCTION, contract, looks)

        scores = {model: scoring.score(names, rows, config) for model, rows in models.items()}
        sure = {model: scoring.intervals(names, rows, config) for model, rows in models.items()}
        against = None
        if config.get("production") and "production" in models:
            against = scoring.comparison(candidate, models["production"], config)
        _write_json(evaluation / METRICS, _metrics(summary, scores, sure, against, config))
        if contract["size"]:
            lengths = predictions.read(source / predictions.CANDIDATE, ["size"])["size"]
            buckets = scoring.by_length(names, lengths, models, config)
            content = {"unit": contract["size"]["unit"], "buckets": buckets}
            _write_json(evaluation / BY_LENGTH, content)
        if parts := scoring.by_slice(names, models, config):
            _write_json(evaluation / SLICES, {"slices": parts})
        for name, lines in text_files(candidate).items():
            atomic_write(evaluation / name, "".join(f"{line}\n" for line in lines))

        faults = {}
        if contract["answer_kind"] == "text" and config.get("checks"):
            faults = degeneration.examine(
                candidate, _sources(candidate, contract), config["checks"]
            )
            _write_json(evaluation / CHECKS, faults)
            _warn(faults)
        decision = _decide(summary, scores, against, faults, config)
        _write_json(Path(blessing.uri) / BLESSING, decision.to_dict())
        _mark(blessing, decision.blessed)
        events.emit("note", node=NODE, text=decision.sentence)


def _decide(
    summary: dict[str, Any],
    scores: dict[str, dict[str, Metric]],
    against: dict[str, Any] | None,
    faults: dict[str, Any],
    config: dict[str, Any],
) -> rules.Blessing:
    candidate = scores["candidate"]
    version = summary.get("production_version") or ""
    verdicts = rules.undefined(candidate)
    verdicts += rules.floors(candidate, config.get("floors", {}))
    verdicts += rules.degeneration(faults)
    comparison = config.get("production")
    if comparison and against:
        name = comparison["metric"]
        verdicts += rules.not_worse(
            candidate[name],
            scores["production"][name],
            comparison.get("tolerance", 0.0),
            version,
            against["p_value"],
            comparison.get("significance", 0.05),
        )
    elif comparison and summary.get("production_error"):
        verdicts += rules.no_comparison(version, summary["production_error"])
    return rules.bless(verdicts)


def _metrics(
    summary: dict[str, Any],
    scores: dict[str, dict[str, Metric]],
    sure: dict[str, dict[str, Any]],
    against: dict[str, Any] | None,
    config: dict[str, Any],
) -> dict[str, Any]:
    def plain(model: str) -> dict[str, Any]:
        return {
            name: {**metric.to_dict(), "interval": sure[model][name]}
            for name, metric in scores[model].items()
        }

    production = None
    if "production" in scores:
        production = {
            "version": summary.get("production_version"),
            "path": summary["production"],
            "metrics": plain("production"),
            "comparison": against,
        }
    beside = None
    if "baseline" in scores:
        label = BASELINES[config["baseline"]].label
        beside = {"name": config["baseline"], "label": label, "metrics": plain("baseline")}
    return {
        "rows": summary["rows"],
        "metrics": plain("candidate"),
        "production": production,
        "baseline": beside,
    }


def _sources(rows: Rows, contract: dict[str, Any]) -> list[str] | None:
    """The texts that the model was asked; None where it was asked none."""
    names = [entry["name"] for entry in contract["inputs"] if entry["kind"] == "text"]
    return list(rows.columns[names[0]]) if names else None


def _warn(faults: dict[str, Any]) -> None:
    for entry in faults.values():
        if entry["action"] == "warn" and rules.over(entry):
            events.emit("warning", node=NODE, text=rules.tell_share(entry))


def _mark(blessing: Artifact, blessed: bool) -> None:
    """TFX's convention, so that TFX's own Pusher would obey the blessing too."""
    name = constants.BLESSED_FILE_NAME if blessed else constants.NOT_BLESSED_FILE_NAME
    atomic_write(Path(blessing.uri) / name, "")
    value = constants.BLESSED_VALUE if blessed else constants.NOT_BLESSED_VALUE
    blessing.set_int_custom_property(constants.ARTIFACT_PROPERTY_BLESSED_KEY, value)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    atomic_write(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
