"""Evaluates decoded models: metrics, slices, degenerate outputs, and the gate's decision."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import regex

from regard.components.common import prediction_table
from regard.components.common.artifact_files import JsonFile
from regard.components.common.prediction_table import PredictionsSummary
from regard.components.data.target_overlap import read_overlap
from regard.components.evaluator import gate, results, scoring
from regard.components.evaluator.confidence import ConfidenceResult, measure_confidence
from regard.components.evaluator.degeneration import find_degenerate_outputs
from regard.components.evaluator.external_metrics import run_commands
from regard.components.evaluator.predictions import baseline_rows, read_rows, text_files
from regard.components.evaluator.robustness import check_robustness, score_robustness
from regard.components.evaluator.row_differences import RowDifferences, compare_rows
from regard.components.evaluator.scoring import ModelScores
from regard.components.evaluator.slices import REMEDY, Slice, make_slices, read_vocabulary
from regard.components.settings.evaluation import EvaluationConfig
from regard.core import events
from regard.core.errors import DataError
from regard.core.files import atomic_write, write_json
from regard.models import metrics
from regard.models.metrics import Rows
from regard.models.metrics.perplexity import drop_incomparable_scores
from regard.models.vocabulary import UNSPACED
from regard.serving.contract import Contract, answer_kind, text_inputs

NODE = "Evaluator"


def evaluate(
    source: Path, folder: Path, config: EvaluationConfig, findings: Path | None = None
) -> tuple[results.Evaluation, results.Decision]:
    """Score the models on the same rows, and decide about the candidate.

    The files in ``regard.components.evaluator.results`` are written, except the decision, and the
    outputs and references as plain text.

    Args:
        source: the folder with the tables of predictions and their summary.
        folder: the folder to write to.
        config: the ``evaluation`` section.
        findings: the folder of the ExampleValidator; None if the training data are unknown.

    Raises:
        UserError: there are no rows, or a metric does not score such outputs.
    """
    summary = prediction_table.read_summary(source)
    contract = summary["contract"]
    inputs = text_inputs(contract)
    is_text = answer_kind(contract).is_text
    rows = _read_models(source, summary, config)
    scoring.check_metrics(rows[results.CANDIDATE], config)  # before commands run for long
    numbers = run_commands(config, scoring.required_metrics(config), rows)
    scores = {
        model: ModelScores(outputs, config, model not in config.baselines, numbers[model])
        for model, outputs in rows.items()
    }
    vocabulary, overlap = None, None
    if findings is not None:
        vocabulary = read_vocabulary(findings, inputs) if inputs else None
        if is_text and config.slices.target_overlap:
            overlap = read_overlap(findings, REMEDY)
    lengths = None
    if contract["size"]:
        lengths = prediction_table.read(source / prediction_table.CANDIDATE, ["size"])["size"]
    slices = make_slices(rows[results.CANDIDATE], lengths, inputs, vocabulary, overlap, config)
    scored = scoring.score_slices(scores, slices)
    comparison = scoring.compare(scores, slices, config)
    baselines = scoring.compare_baselines(scores, config)
    candidate = scores[results.CANDIDATE].metrics
    robustness = score_robustness(source, contract, rows[results.CANDIDATE], candidate, config)
    evaluation = _evaluation(summary, scores, comparison, baselines, robustness, config)
    evaluation.write(folder)
    _write_slices(folder, scored, scores, config, contract)
    _replace(folder, compare_rows(rows, scores, slices, contract, config), RowDifferences)
    for name, lines in text_files(rows[results.CANDIDATE]).items():
        atomic_write(folder / name, "".join(f"{line}\n" for line in lines))

    table = source / prediction_table.CANDIDATE
    confidence = measure_confidence(table, rows[results.CANDIDATE], contract)
    _replace(folder, confidence, ConfidenceResult)
    degenerate: dict[str, results.DegenerateCheck] = {}
    if is_text:
        _warn_about_tokenization(rows[results.CANDIDATE], config)
        sources = list(rows[results.CANDIDATE].columns[inputs[0]]) if inputs else None
        degenerate = find_degenerate_outputs(rows[results.CANDIDATE], sources, config.checks)
        content = {name: check.model_dump() for name, check in degenerate.items()}
        write_json(folder / "checks.json", {"checks": content})
        for check in degenerate.values():
            if check.action == "warn" and check.is_over_limit:
                text = f"Degenerate outputs: {check.summary}"
                events.emit("warning", node=NODE, text=text)
    decision = gate.decide(
        {model: model_scores.metrics for model, model_scores in scores.items()},
        scored,
        comparison,
        degenerate,
        config,
        version=summary.get("production_version") or "",
        production_error=summary.get("production_error") or "",
        baselines=baselines,
        further=check_robustness(robustness, candidate),
    )
    return evaluation, decision


def _replace(folder: Path, result: JsonFile | None, kind: type[JsonFile]) -> None:
    """Write a result, or remove that of an earlier evaluation with the same folder."""
    if result is not None:
        result.write(folder)
    else:
        (folder / kind.FILE).unlink(missing_ok=True)


def _warn_about_tokenization(rows: Rows, config: EvaluationConfig) -> None:
    """Warn if BLEU would take whole sentences as words, because their script has no spaces."""
    letters = "".join(references[0] for references in rows.references)
    unspaced = len(regex.findall(f"[{UNSPACED}]", letters))
    has_bleu = any(name.startswith("bleu") for name in config.metrics)
    if has_bleu and config.tokenize in ("13a", "intl") and unspaced > len(letters) / 2:
        text = (
            f"evaluation.tokenize: {config.tokenize} separates words at spaces, which most of the "
            "references lack, so BLEU is too low. Set zh for Chinese, ja-mecab for Japanese, char "
            "for other scripts"
        )
        events.emit("warning", node=NODE, text=text)


def _read_models(
    source: Path, summary: PredictionsSummary, config: EvaluationConfig
) -> dict[str, Rows]:
    """Return the outputs of every model on the same rows, by model."""
    contract = summary["contract"]
    with_attention = any(map(metrics.needs_attention, scoring.required_metrics(config)))
    candidate = read_rows(source / prediction_table.CANDIDATE, contract, with_attention)
    if not candidate.hypotheses:
        message = "The test split has no rows, so the model cannot be evaluated"
        raise DataError(message, remedy="Add rows to `data.test`, or increase `data.split.test`.")
    rows = {results.CANDIDATE: candidate}
    rows |= {name: baseline_rows(candidate, contract, name) for name in config.baselines}
    if summary["production"]:
        production = read_rows(source / prediction_table.PRODUCTION, contract, with_attention)
        rows[results.PRODUCTION] = drop_incomparable_scores(production, candidate)
    return rows


def _evaluation(
    summary: PredictionsSummary,
    scores: Mapping[str, ModelScores],
    comparison: results.Comparison | None,
    baselines: list[results.BaselineResult],
    robustness: list[results.RobustnessResult],
    config: EvaluationConfig,
) -> results.Evaluation:
    production = None
    if results.PRODUCTION in scores:
        production = results.ProductionResult(
            version=summary.get("production_version"),
            path=summary["production"],
            metrics=scores[results.PRODUCTION].results(config.samples),
            comparison=comparison,
        )
    candidate = scores[results.CANDIDATE].results(config.samples)
    return results.Evaluation(
        rows=summary["rows"],
        metrics=candidate,
        production=production,
        baselines=baselines,
        robustness=robustness,
    )


def _write_slices(
    folder: Path,
    slices: Sequence[Slice],
    models: Mapping[str, ModelScores],
    config: EvaluationConfig,
    contract: Contract,
) -> None:
    """Write the scored slices by length to one file, with the unit, and the others to another."""
    others = []
    buckets: list[results.LengthBucket] = []
    for part in slices:
        count, scores = len(part.rows), part.scores
        if part.bounds:
            low, high = part.bounds
            intervals = {
                model: model_scores.first_interval(part.rows, config.samples)
                for model, model_scores in models.items()
                if model not in config.baselines
            }
            bucket = results.LengthBucket(
                low=low, high=high, rows=count, scores=scores, intervals=intervals
            )
            buckets.append(bucket)
        else:
            others.append({"kind": part.kind, "name": part.name, "rows": count, "scores": scores})
    if contract["size"]:
        results.LengthScores(unit=contract["size"]["unit"], buckets=buckets).write(folder)
    if others:
        write_json(folder / "slices.json", {"slices": others})
