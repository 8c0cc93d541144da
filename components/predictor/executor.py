"""The Predictor's work: read the test split, decode it with each model, keep the answers."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import path_utils

from components import events, predictions
from components.errors import UserError
from components.predictions import Row
from components.predictor.decode import Decoded, decode, device
from components.predictor.rows import read_rows, test_split
from components.registry import Registry
from models.tasks.features import Feature
from serving.saved_model import SavedModelError, SourceRefused

NODE = "Predictor"
LATEST = "latest"
SECONDS_BETWEEN_EVENTS = 0.5


class PredictorExecutor(BaseExecutor):
    """Writes ``candidate.parquet``, ``production.parquet`` and ``predictions.json``."""

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Decodes; a production model that fails is reported and left out."""
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        model = artifact_utils.get_single_instance(input_dict["model"])
        folder = Path(artifact_utils.get_single_uri(output_dict["predictions"]))
        features = [Feature.from_json(entry) for entry in json.loads(exec_properties["features"])]
        rows = read_rows(test_split(examples), features)
        aligned = bool(exec_properties.get("aligned"))
        ask = _Asking(rows, features, int(exec_properties["batch_size"]), aligned)

        candidate = Path(path_utils.serving_model_path(model.uri))
        production, version = rival(
            exec_properties["production"], exec_properties["production_version"]
        )
        share = 0.5 if production else 1.0

        decoded = ask("the new model", candidate, 0.0, share)
        predictions.write(folder / predictions.CANDIDATE, features, rows, decoded.answers)
        _tell_cut(decoded)
        models = {"candidate": _speed(candidate, decoded)}
        error = None
        if production:
            table = folder / predictions.PRODUCTION
            try:
                beside = ask(f"version {version}", Path(production), share, 1.0)
                predictions.write(table, features, rows, beside.answers)
            # Whatever is wrong with the old model must not keep a new one from being judged.
            except Exception as failure:
                error = f"{type(failure).__name__}: {failure}"
                events.emit(
                    "warning",
                    node=NODE,
                    text=f"version {version} in production cannot be decoded, so there is no"
                    f" comparison with it: {_short(error)}",
                )
            else:
                models["production"] = _speed(Path(production), beside)
        predictions.write_summary(
            folder,
            {
                "rows": len(rows),
                "seconds": round(decoded.seconds, 3),
                "sentences_per_second": round(decoded.sentences_per_second, 1),
                "production": production if production and error is None else None,
                "production_version": version or None,
                "production_error": error,
                "batch_size": ask.batch_size,
                "device": device(),
                "models": models,
                "contract": decoded.contract,
            },
        )


def rival(production: str, version: str) -> tuple[str, str]:
    """Folder and number of the version to compare with; empty where there is none.

    Args:
        production: its folder, or empty; or, with ``LATEST``, the folder of all versions.
        version: its number, or ``LATEST``: the newest one that is there now.
    """
    if version != LATEST:
        return production, version
    folder = Path(production)
    registry = Registry(folder.parent)
    newest = registry.latest(folder.name)
    return (str(registry.path(folder.name, newest)), str(newest)) if newest else ("", "")


class _Asking:
    """The rows, to be asked of one model and then of another.

    Args:
        rows: of the test split.
        features: those of the task.
        batch_size: rows asked together.
        aligned: whether to see where the models look for the references.
    """

    def __init__(
        self, rows: list[Row], features: Sequence[Feature], batch_size: int, aligned: bool
    ):
        self.rows, self.batch_size = rows, batch_size
        self._given = [row.references[0] for row in rows] if aligned else None
        inputs = [feature.kind for feature in features if feature.role == "input"]
        self._noun = "sentences" if inputs == ["text"] else "rows"
        (self._wanted,) = (f.kind for f in features if f.role == "reference")
        self._told = 0.0

    def __call__(self, label: str, model: Path, first: float, last: float) -> Decoded:
        """Decodes with progress events whose fraction runs from ``first`` to ``last``.

        Raises:
            UserError: a row is longer than the model takes.
            SavedModelError: the model is not what it should be, or one of another task.
        """
        self._told = time.monotonic()

        def progress(done: int, seconds: float) -> None:
            self._tell(label, done, seconds, first + (last - first) * done / len(self.rows))

        try:
            asked = [row.inputs for row in self.rows]
            decoded = decode(model, asked, self.batch_size, progress, self._given)
        except SourceRefused as error:
            raise UserError(
                f"the test split cannot be decoded: {error}",
                where="search.long_source",
                remedy="Raise search.max_source_length, or let long_source: truncate cut them.",
            ) from None
        if (kind := decoded.contract["answer_kind"]) != self._wanted:
            raise SavedModelError(
                f"its answers are of the kind {kind}, and the references are {self._wanted}"
            )
        return decoded

    def _tell(self, label: str, done: int, seconds: float, fraction: float) -> None:
        now = time.monotonic()
        if now - self._told < SECONDS_BETWEEN_EVENTS and done < len(self.rows):
            return
        self._told = now
        speed = done / seconds if seconds else 0.0
        events.emit(
            "progress",
            node=NODE,
            text=f"{label}: {done:,} of {len(self.rows):,} {self._noun},"
            f" {speed:,.0f} {self._noun}/s",
            fraction=fraction,
            sentences_per_second=round(speed, 1),
        )


def _tell_cut(decoded: Decoded) -> None:
    """Says how many rows the model has not read to their end."""
    cut = [answer.cut for answer in decoded.answers if answer.cut]
    if cut:
        inputs = [entry["name"] for entry in decoded.contract["inputs"]]
        noun = f"{inputs[0]}s" if len(inputs) == 1 else "rows"
        # What is searched for has a score, and the search's section says what is read.
        limit = "search.max_source_length" if decoded.contract["score"] else "the model reads"
        events.emit(
            "warning",
            node=NODE,
            text=f"{len(cut):,} of {len(decoded.answers):,} {noun} are longer than "
            f"{limit}: {sum(cut):,} pieces were not read",
        )


def _speed(model: Path, decoded: Decoded) -> dict[str, Any]:
    return {
        "path": str(model),
        "load_seconds": round(decoded.load_seconds, 3),
        "seconds": round(decoded.seconds, 3),
        "sentences_per_second": round(decoded.sentences_per_second, 1),
    }


def _short(text: str, limit: int = 200) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
