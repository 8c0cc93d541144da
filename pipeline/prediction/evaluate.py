"""Evaluate finished models on any data, with the metrics and the report of a run."""

import dataclasses
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from regard.components.common import prediction_table
from regard.components.common.prediction_table import ModelSummary, PredictionsSummary, Row
from regard.components.common.references import resolve_references
from regard.components.common.run_record import RunRecord
from regard.components.evaluator.evaluation import evaluate as score
from regard.components.evaluator.external_metrics import metric_specs
from regard.components.evaluator.results import Evaluation
from regard.components.predictor.reference_outputs import ReferenceScores
from regard.components.predictor.row_decoder import RowDecoder
from regard.components.predictor.row_noise import RowNoise, changes_of_rows
from regard.components.registry.records import VersionRecord
from regard.components.reporter import difference_page, page
from regard.components.reporter.run_facts import RunFacts
from regard.components.settings.data import Files
from regard.components.settings.evaluation import EvaluationConfig
from regard.core import provenance
from regard.core.errors import EnvironmentFault, UserError
from regard.core.features import Feature
from regard.core.files import atomic_write
from regard.core.text_noise import noisy_features
from regard.models import metrics as known_metrics
from regard.models import tasks
from regard.models.settings.validation_errors import validation_problems
from regard.models.tasks.description import Description
from regard.pipeline.prediction.evaluation_data import read_data
from regard.pipeline.prediction.input_rows import with_tag
from regard.pipeline.prediction.mbr import open_sampled
from regard.pipeline.prediction.models import open_model
from regard.serving.contract import SavedModelError
from regard.serving.saved_model import Model, Prediction

REPORT = "report.html"


def evaluate(
    names: Sequence[str],
    registry: Path,
    files: Files,
    metrics: Sequence[str] = (),
    columns: Mapping[str, int | str] | None = None,
    out: Path | None = None,
    on_progress: Callable[[str], None] = lambda text: None,
    tag: str | None = None,
    notes: list[str] | None = None,
    explore: Path | None = None,
    robustness: bool = False,
    search: Mapping[str, Any] | None = None,
    mbr: str | None = None,
) -> Evaluation:
    """Decode data with one or two models, and score them.

    Args:
        names: the model, and a second one to compare it with; see ``open_model``.
        registry: the registry's folder.
        files: one file, several, or one for each side, as in ``data.train``.
        metrics: the metrics; none: those of the model's own evaluation.
        columns: the columns of the features; None: those of the model's configuration.
        out: the folder for the outputs, the metrics and the report; None: nothing is kept.
        on_progress: called with a text while the models run.
        tag: the tag of all texts; None if a column has them, or the models have none.
        notes: receives sentences about the columns that are read.
        explore: the file of a page about the rows on which two models differ; None: no page.
        robustness: whether to score the first model with changed inputs as well, as
            ``evaluation.robustness`` of its own evaluation says.
        search: keys of the section ``search`` that replace those of the first model.
        mbr: the utility by which the first model's samples are chosen; None: no such choice.

    Returns:
        The metrics with confidence intervals; those of the second model are in ``production``, with
        the significance test of the difference.

    Raises:
        UserError: a model, a file, a row or a metric cannot be used.
    """
    if len(names) > 2:
        raise UserError(f"There are {len(names)} models.", "MODEL", "Give one or two.")
    if explore is not None:
        _validate_page(explore, names)
    models = [_open_model(names[0], registry, search, mbr)]
    if mbr is not None:
        names = [f"{names[0]} ({mbr} of samples)", *names[1:]]
    models += [open_model(name, registry) for name in names[1:]]
    (model, record), *others = models
    for name, (other, _) in zip(names[1:], others, strict=True):
        if other.contract["task"] != model.contract["task"]:
            kinds = f"{model.contract['task']} and {other.contract['task']}"
            raise UserError(f"The models have different tasks: {kinds}.", where=name)
    description = tasks.describe(model.contract["task"])
    dimensions = {entry["name"]: entry.get("dimensions", 2) for entry in model.contract["inputs"]}
    features = tuple(
        dataclasses.replace(feature, dimensions=dimensions.get(feature.name, 2))
        for feature in description.features
    )
    description = dataclasses.replace(description, features=features)
    corpus, rows, remarks = read_data(description, record, files, columns)
    if notes is not None:
        notes += remarks
    config = _evaluation_config(description, record, metrics, corpus.features, robustness)
    with tempfile.TemporaryDirectory() as temporary:
        folder = out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        summaries: dict[str, ModelSummary] = {}
        tables = (prediction_table.CANDIDATE, prediction_table.PRODUCTION)
        roles = ("candidate", "production")
        for role, table, (decoder, _), name in zip(roles, tables, models, names, strict=False):
            has_tags = decoder is model or bool(decoder.contract.get("tags"))
            predictions, summaries[role] = _decode(
                decoder, name, rows, config, on_progress, tag if has_tags else None
            )
            prediction_table.write(folder / table, corpus.features, rows, predictions)
        for noise in _changes(description, record, config, model):
            noisy_rows = [noise(row, number) for number, row in enumerate(rows)]
            label = f"{names[0]}, {noise.label}"
            predictions, _ = _decode(model, label, noisy_rows, config, on_progress, tag)
            table = prediction_table.robustness_table(noise.kind)
            prediction_table.write(folder / table, corpus.features, noisy_rows, predictions)
        if not others:
            (folder / prediction_table.PRODUCTION).unlink(missing_ok=True)
        summary: PredictionsSummary = {
            "rows": len(rows),
            "sentences_per_second": summaries["candidate"]["sentences_per_second"],
            "production": names[1] if others else None,
            "production_version": names[1] if others else None,
            "production_error": None,
            "batch_size": config.batch_size,
            "device": "",
            "models": summaries,
            "contract": model.contract,
        }
        prediction_table.write_summary(folder, summary)
        evaluation, _ = score(folder, folder, config)
        facts = _run_facts(folder, names[0], description.name, record)
        if out is not None:
            page.write(folder / REPORT, facts, names)
        if explore is not None:
            content = difference_page.render(facts, names)
            if not content:
                problem = "None of the metrics has values for single rows."
                raise UserError(problem, "--explore", "Name another one with --metrics.")
            atomic_write(explore, content)
    return evaluation


def _open_model(
    name: str, registry: Path, search: Mapping[str, Any] | None, mbr: str | None
) -> tuple[Model, VersionRecord]:
    """Open the first model, with the search and the choice of samples that are wanted."""
    if mbr is None:
        return open_model(name, registry, search=search)
    return open_sampled(name, registry, mbr, search)


def _evaluation_config(
    description: Description,
    record: VersionRecord,
    names: Sequence[str],
    features: Sequence[Feature],
    robustness: bool = False,
) -> EvaluationConfig:
    """Return the evaluation of the model's run, without what needs its training data or a gate.

    Raises:
        UserError: a metric is unknown or does not fit the task.
    """
    recorded = dict(record.config.get("evaluation") or {})
    chosen = list(names or recorded.get("metrics") or description.metrics)
    external = dict(recorded.get("external") or {})
    if not names:  # commands of a record run only if the user names their metrics
        chosen = [m for m in chosen if not known_metrics.needs_attention(m) and m not in external]
        chosen = chosen or list(description.metrics)
    used = {name: metric for name, metric in external.items() if name in chosen}
    try:
        external |= resolve_references(used, os.environ, {})
    except LookupError as error:
        raise EnvironmentFault(f"A command cannot run: {error}.", "--metrics", "Set it.") from None
    extras = {feature.name for feature in features}
    slices = dict(recorded.get("slices") or {})
    slices |= {"thresholds": {}, "oov": None, "target_overlap": False}
    slices["by"] = [name for name in slices.get("by") or () if name in extras]
    slices["patterns"] = {
        name: pattern
        for name, pattern in (slices.get("patterns") or {}).items()
        if pattern["feature"] in extras
    }
    settings = {
        **{key: recorded[key] for key in ("tokenize", "lowercase", "samples") if key in recorded},
        **{key: recorded[key] for key in ("batch_size", "length_buckets") if key in recorded},
        "metrics": chosen,
        "external": external,
        "slices": slices,
        "baselines": [],
        "robustness": _robustness_settings(recorded, chosen) if robustness else None,
        "production": {"metric": chosen[0]},
    }
    try:
        config = EvaluationConfig.model_validate(settings)
        for name in chosen:
            known_metrics.get_metric(name, description.output_kind, metric_specs(config))
        return config
    except ValidationError as error:
        first = validation_problems(error, EvaluationConfig)[0]
        raise UserError(first.message, "--metrics") from None
    except ValueError as error:
        raise UserError(str(error), "--metrics") from None


def _robustness_settings(recorded: Mapping[str, Any], metrics: Sequence[str]) -> dict[str, Any]:
    """Return the recorded ``evaluation.robustness``, or the default, without limits.

    Raises:
        UserError: no metric can be computed for changed inputs.
    """
    if not any(map(known_metrics.suits_changed_inputs, metrics)):
        message = "No metric can be computed for changed inputs."
        raise UserError(message, "--robustness", "Name another one with --metrics.")
    return {**(recorded.get("robustness") or {}), "metric": None, "max_loss": {}}


def _changes(
    description: Description, record: VersionRecord, config: EvaluationConfig, model: Model
) -> list[RowNoise]:
    """Return the changes of inputs that the model is decoded with.

    Raises:
        UserError: the model reads no text.
    """
    if config.robustness is None:
        return []
    if not (names := noisy_features(description.features)):
        message = f"A model of the task {description.name} reads no text that can change."
        raise UserError(message, "--robustness", "Remove the option.")
    symbols = (record.config.get("tokenizer") or {}).get("user_defined_symbols", ())
    return changes_of_rows(config.robustness, names, symbols, model.contract.get("tags", ()))


def _decode(
    model: Model,
    name: str,
    rows: Sequence[Row],
    config: EvaluationConfig,
    on_progress: Callable[[str], None],
    tag: str | None,
) -> tuple[list[Prediction], ModelSummary]:
    """Decode all rows.

    Raises:
        UserError: the model does not fit its contract, or an input is too long.
    """
    needs_scores = "perplexity" in config.metrics and model.contract["scored"] is not None
    outputs = [ReferenceScores()] if needs_scores else []
    tagged = [
        dataclasses.replace(row, inputs=with_tag(row.inputs, model.contract, tag)) for row in rows
    ]

    def report(count: int) -> None:
        on_progress(f"{name}: {count:,} of {len(rows):,} rows")

    try:
        decoded = RowDecoder(model, config.batch_size, outputs).decode(tagged, report)
    except SavedModelError as error:
        raise UserError(f"The model cannot be used: {error}", name) from error
    speed = round(len(rows) / decoded.seconds, 1) if decoded.seconds else 0.0
    return decoded.predictions, {
        "path": name,
        "load_seconds": 0.0,
        "seconds": round(decoded.seconds, 3),
        "sentences_per_second": speed,
    }


def _run_facts(folder: Path, name: str, task: str, record: VersionRecord) -> RunFacts:
    run = RunRecord(name=name, started=time.time(), stack=provenance.stack_versions())
    folders = dict.fromkeys(("predictions", "evaluation"), folder)
    return RunFacts(run, folders, task, record.config)


def _validate_page(path: Path, names: Sequence[str]) -> None:
    """Check what a page about the differences of two models needs, before they are decoded.

    Raises:
        UserError: there is one model, or the page cannot be written.
    """
    if len(names) < 2:
        raise UserError("There is one model.", "--explore", "Name a second model to compare with.")
    if path.is_dir() or not path.absolute().parent.is_dir():
        problem = "The path is a folder." if path.is_dir() else "The folder does not exist."
        raise UserError(problem, f"--explore {path}", "Give a file, such as differences.html.")
