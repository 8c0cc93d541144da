"""The Evaluator's work: score candidate and production on the same rows, and decide."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfx.components.evaluator import constants
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact

from components import events, predictions, seen
from components.errors import UserError
from components.evaluator import blessing as rules
from components.evaluator import decision, degeneration, model_analysis, scoring, slices
from components.evaluator.answers import answered, baseline, text_files
from components.evaluator.scoring import Part, Scores
from components.evaluator.unknown_words import REMEDY, Vocabulary, vocabulary
from components.files import atomic_write
from models import metrics
from models.metrics import Metric, Rows, likelihood
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
    ``slices.json``, of texts ``checks.json``, the answers and references as plain text, and all
    numbers once more as TensorFlow Model Analysis reads them, in ``tfma/``.
    """

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Scores and blesses; a model that is not blessed is no error."""
        source = Path(artifact_utils.get_single_uri(input_dict["predictions"]))
        artifact = artifact_utils.get_single_instance(output_dict["evaluation"])
        evaluation = Path(artifact.uri)
        blessing = artifact_utils.get_single_instance(output_dict["blessing"])
        config = json.loads(exec_properties["config"])

        summary = predictions.read_summary(source)
        contract = summary["contract"]
        asked = [entry["name"] for entry in contract["inputs"] if entry["kind"] == "text"]
        names = scoring.wanted_metrics(config)
        models = _answers(source, summary, names, config)
        candidate = models["candidate"]

        scores = {model: Scores(names, rows, config) for model, rows in models.items()}
        values = {model: found.metrics for model, found in scores.items()}
        samples = config.get("samples", 0)
        sure = {model: found.intervals(samples) for model, found in scores.items()}
        lengths = None
        if contract["size"]:
            lengths = predictions.read(source / predictions.CANDIDATE, ["size"])["size"]
        apart = config.get("slices", {}).get("seen") and contract["answer_kind"] == "text"
        known, repeated = _known(input_dict.get("findings"), asked, apart)
        found = slices.find(candidate, lengths, asked, known, repeated, config)
        parts = scoring.in_parts(scores, found)
        against = None
        if config.get("production") and "production" in models:
            pair = scores["candidate"], scores["production"]
            against = scoring.comparison(*pair, config, decision.compared(found, config))
        content = _metrics(summary, values, sure, against, config)
        _write_json(evaluation / METRICS, content)
        _write_parts(evaluation, parts, contract, known)
        for name, lines in text_files(candidate).items():
            atomic_write(evaluation / name, "".join(f"{line}\n" for line in lines))

        faults = {}
        if contract["answer_kind"] == "text" and config.get("checks"):
            sources = list(candidate.columns[asked[0]]) if asked else None
            faults = degeneration.examine(candidate, sources, config["checks"])
            _write_json(evaluation / CHECKS, faults)
            _warn(faults)
        decided = decision.decide(summary, values, parts, against, faults, config)
        _write_json(Path(blessing.uri) / BLESSING, decided.to_dict())
        _mark(blessing, decided.blessed)
        model_analysis.write(evaluation / model_analysis.FOLDER, content, parts, decided, config)
        _tell(artifact, content)
        events.emit("note", node=NODE, text=decided.sentence)


def _answers(
    source: Path, summary: Mapping[str, Any], names: Sequence[str], config: Mapping[str, Any]
) -> dict[str, Rows]:
    """The answers of every model to the same rows, by model."""
    contract, looks = summary["contract"], any(metrics.looks(name) for name in names)
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
        production = answered(source / predictions.PRODUCTION, contract, looks)
        models["production"] = likelihood.comparable(production, candidate)
    return models


def _known(
    findings: list[Artifact] | None, asked: Sequence[str], apart: bool
) -> tuple[Vocabulary | None, frozenset[int] | None]:
    """The train split's words, and if asked which references are there too, if anybody looked."""
    if not findings:
        return None, None
    folder = Path(artifact_utils.get_single_uri(findings))
    words = vocabulary(folder, asked) if asked else None
    return words, (seen.read(folder, REMEDY) if apart else None)


def _write_parts(
    evaluation: Path, parts: Sequence[Part], contract: Mapping[str, Any], known: Vocabulary | None
) -> None:
    """The slices by length in a file of their own, which also says what their unit is."""
    if contract["size"]:
        buckets = [part for part in parts if part.slice.bounds]
        _write_json(
            evaluation / BY_LENGTH,
            {"unit": contract["size"]["unit"], "buckets": [_bucket(part) for part in buckets]},
        )
    others = [part.to_dict() for part in parts if not part.slice.bounds]
    if others:
        words = None if known is None else {"count": len(known.words), "all": known.complete}
        _write_json(evaluation / SLICES, {"slices": others, "words": words})


def _bucket(part: Part) -> dict[str, Any]:
    low, high = part.slice.bounds or (0, None)
    return {"from": low, "to": high, "rows": len(part.slice.rows), **part.values}


def _tell(evaluation: Artifact, content: Mapping[str, Any]) -> None:
    """The candidate's metrics in ML Metadata, where they can be asked for."""
    evaluation.set_int_custom_property("rows", content["rows"])
    for name, metric in content["metrics"].items():
        if math.isfinite(metric["value"]):  # a database knows no other numbers
            evaluation.set_float_custom_property(f"metric_{name}", metric["value"])
        evaluation.set_string_custom_property(f"signature_{name}", metric["signature"])


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
