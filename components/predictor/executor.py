"""The Predictor's executor: decodes a split with each model, and keeps the outputs."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import artifact_utils
from tfx.utils import path_utils

from regard.components.common import prediction_table
from regard.components.common.artifact_files import examples_split
from regard.components.common.artifact_types import Artifacts, Properties
from regard.components.common.prediction_table import PredictionsSummary
from regard.components.predictor.batch_plan import plan_batches
from regard.components.predictor.batch_results import NODE
from regard.components.predictor.decode import DecodeResult, SplitDecoder
from regard.components.predictor.reference_outputs import (
    ReferenceAttention,
    ReferenceOutput,
    ReferenceScores,
)
from regard.components.predictor.row_noise import RowNoise, changes_of_rows
from regard.components.registry.store import production_baseline
from regard.components.settings.evaluation import RobustnessConfig
from regard.core import events
from regard.core.features import Feature
from regard.core.formatting import truncate
from regard.core.kinds import feature_from_json
from regard.core.text_noise import noisy_features
from regard.models.reference_columns import ALIGNMENT


class PredictorExecutor(BaseBeamExecutor):
    """Writes ``candidate.parquet``, ``production.parquet`` and ``predictions.json``.

    With ``robustness``, also the candidate's outputs for each kind of changed inputs.
    """

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Decode the split; a production model that fails is reported and left out.

        Raises:
            UserError: there is no such split, an input is too long for the new model, or the model
                has no such layer or head.
            SavedModelError: the new model does not fit its contract or the task.
            Exception: any other error in a worker.
        """
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        model = artifact_utils.get_single_instance(input_dict["model"])
        folder = Path(artifact_utils.get_single_uri(output_dict["predictions"]))
        features = [feature_from_json(entry) for entry in json.loads(exec_properties["features"])]
        heads = exec_properties.get("reference_attention")
        attention = ReferenceAttention(**json.loads(heads)) if heads else None
        outputs: list[ReferenceOutput] = [attention] if attention else []
        outputs += [ReferenceScores()] if exec_properties.get("reference_scores") else []
        batch_size = int(exec_properties["batch_size"])
        split = exec_properties["split"]
        plan = plan_batches(examples_split(examples, split), features, batch_size)
        decoder = SplitDecoder(self._make_beam_pipeline, plan, features, outputs)

        candidate_path = Path(path_utils.serving_model_path(model.uri))
        production, version = production_baseline(
            exec_properties["production"], exec_properties["production_version"]
        )
        changes = _changes(exec_properties, features)
        share = 1.0 / (1 + bool(production) + len(changes))
        table = folder / prediction_table.CANDIDATE
        candidate = decoder.decode(candidate_path, table, "the new model", (0.0, share))
        _warn_about_truncation(candidate)
        models = {"candidate": candidate.summary(candidate_path)}
        error = None
        if production:
            table = folder / prediction_table.PRODUCTION
            label = f"version {version}"
            try:
                result = decoder.decode(
                    Path(production), table, label, (share, 2 * share), skip_unavailable=True
                )
            # An error of the old model must not prevent the evaluation of the new one.
            except Exception as failure:
                error = f"{type(failure).__name__}: {failure}"
                reason = truncate(" ".join(error.split()), 200)
                consequence = "cannot be decoded, so there is no comparison with it"
                _warn(f"{label} in production {consequence}: {reason}")
            else:
                models["production"] = result.summary(Path(production))
                has_attention = ALIGNMENT in prediction_table.column_names(table)
                if attention and attention.layer and not has_attention:
                    _warn(f"{label} in production has no {attention}, so its aer is unknown")
        # The attention for the references is that of the clean inputs.
        scorer = dataclasses.replace(decoder, reference_outputs=outputs[bool(attention) :])
        for number, noise in enumerate(changes, 1 + bool(production)):
            table = folder / prediction_table.robustness_table(noise.kind)
            label = f"the new model, {noise.label}"
            progress = (number * share, (number + 1) * share)
            decoded = scorer.decode(candidate_path, table, label, progress, noise=noise)
            _warn_about_truncation(decoded, f"With {noise.label}, ")
        summary: PredictionsSummary = {
            "split": split,
            "rows": plan.rows,
            "sentences_per_second": models["candidate"]["sentences_per_second"],
            "production": production if production and error is None else None,
            "production_version": version or None,
            "production_error": error,
            "batch_size": batch_size,
            "device": candidate.device,
            "models": models,
            "contract": candidate.contract,
        }
        prediction_table.write_summary(folder, summary)


def _changes(exec_properties: Properties, features: Sequence[Feature]) -> list[RowNoise]:
    """Return the changes of inputs that the model is decoded with."""
    if not (section := exec_properties.get("robustness")):
        return []
    config = RobustnessConfig.model_validate_json(section)
    symbols = json.loads(exec_properties["symbols"])
    tags = [tag for feature in features for tag in feature.tags]
    return changes_of_rows(config, noisy_features(features), symbols, tags)


def _warn_about_truncation(result: DecodeResult, prefix: str = "") -> None:
    rows = sum(batch.rows for batch in result.stats)
    truncated = sum(batch.truncated_rows for batch in result.stats)
    if truncated:
        tokens = sum(batch.truncated_tokens for batch in result.stats)
        inputs = [entry["name"] for entry in result.contract["inputs"]]
        noun = f"{inputs[0]}s" if len(inputs) == 1 else "rows"
        # Models with a search have a score, and a limit in the section search.
        limit = "search.max_source_length" if result.contract["score"] else "the model's limit"
        _warn(
            f"{prefix}{truncated:,} of {rows:,} {noun} are longer than {limit}: at least"
            f" {tokens:,} tokens were cut off"
        )


def _warn(text: str) -> None:
    events.emit("warning", node=NODE, text=text)
