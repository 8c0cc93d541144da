"""The Predictor's work: read the test split, decode it with each model, keep the answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import path_utils

from components import events, predictions
from components.predictor import plan
from components.predictor.asking import Given
from components.predictor.decode import Decoded, Decoding
from components.predictor.likelihood import Likelihood
from components.predictor.looks import Looks
from components.predictor.parts import WorkerError
from components.predictor.rows import test_split
from components.predictor.watching import NODE
from components.registry.rival import rival
from models.metrics.aligning import ALIGNMENT
from models.tasks.features import Feature


class PredictorExecutor(BaseBeamExecutor):
    """Writes ``candidate.parquet``, ``production.parquet`` and ``predictions.json``."""

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Decodes; a production model that fails is reported and left out.

        Raises:
            UserError: there is no test split, a row is longer than the new model takes, or that
                has no such layer or head.
            SavedModelError: the new model is not what it should be, or one of another task.
            WorkerError: something else went wrong where it was asked.
        """
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        model = artifact_utils.get_single_instance(input_dict["model"])
        folder = Path(artifact_utils.get_single_uri(output_dict["predictions"]))
        features = [Feature.from_json(entry) for entry in json.loads(exec_properties["features"])]
        batch_size = int(exec_properties["batch_size"])
        aligned = exec_properties.get("aligned")
        looks = Looks(**json.loads(aligned)) if aligned else None
        given: list[Given] = [looks] if looks else []
        given += [Likelihood()] if exec_properties.get("likelihood") else []
        batches = plan.make(test_split(examples), features, batch_size)
        decode = Decoding(self._make_beam_pipeline, batches, features, given)

        candidate = Path(path_utils.serving_model_path(model.uri))
        production, version = rival(
            exec_properties["production"], exec_properties["production_version"]
        )
        share = 0.5 if production else 1.0

        decoded = decode(candidate, folder / predictions.CANDIDATE, "the new model", 0.0, share)
        _tell_cut(decoded)
        models = {"candidate": {"path": str(candidate), **decoded.speed()}}
        error = None
        if production:
            table = folder / predictions.PRODUCTION
            label = f"version {version}"
            try:
                beside = decode(Path(production), table, label, share, 1.0, lenient=True)
            # Whatever is wrong with the old model must not keep a new one from being judged.
            except Exception as failure:
                error = _in_words(failure)
                _warn(
                    f"{label} in production cannot be decoded, so there is no comparison with it:"
                    f" {_short(error)}"
                )
            else:
                models["production"] = {"path": production, **beside.speed()}
                if looks and looks.layer and ALIGNMENT not in predictions.column_names(table):
                    _warn(f"{label} in production has no {looks}, so there is no aer of it")
        predictions.write_summary(
            folder,
            {
                "rows": batches.rows,
                "seconds": models["candidate"]["seconds"],
                "sentences_per_second": models["candidate"]["sentences_per_second"],
                "production": production if production and error is None else None,
                "production_version": version or None,
                "production_error": error,
                "batch_size": batch_size,
                "device": decoded.device,
                "models": models,
                "contract": decoded.contract,
            },
        )


def _tell_cut(decoded: Decoded) -> None:
    """Says how many rows the model has not read to their end."""
    rows, cut, pieces = (
        sum(getattr(one, name) for one in decoded.told)
        for name in ("rows", "cut_rows", "cut_pieces")
    )
    if cut:
        inputs = [entry["name"] for entry in decoded.contract["inputs"]]
        noun = f"{inputs[0]}s" if len(inputs) == 1 else "rows"
        # What is searched for has a score, and the search's section says what is read.
        limit = "search.max_source_length" if decoded.contract["score"] else "the model reads"
        _warn(
            f"{cut:,} of {rows:,} {noun} are longer than {limit}: {pieces:,} pieces were not read"
        )


def _warn(text: str) -> None:
    events.emit("warning", node=NODE, text=text)


def _in_words(failure: Exception) -> str:
    if isinstance(failure, WorkerError):
        return str(failure)
    return f"{type(failure).__name__}: {failure}"


def _short(text: str, limit: int = 200) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
