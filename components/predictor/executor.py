"""The Predictor's work: read the test split, decode it with each model, keep the answers."""

from __future__ import annotations

import time
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
from components.predictor.rows import read_rows
from serving.saved_model import SourceRefused

NODE = "Predictor"
SPLIT = "test"
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
        from models import tasks

        examples = artifact_utils.get_single_instance(input_dict["examples"])
        model = artifact_utils.get_single_instance(input_dict["model"])
        folder = Path(artifact_utils.get_single_uri(output_dict["predictions"]))
        task = tasks.get(exec_properties["task"])
        rows = read_rows(_split(examples), task.inputs[0], task.reference)

        batch_size = int(exec_properties["batch_size"])
        candidate = Path(path_utils.serving_model_path(model.uri))
        production = exec_properties["production"]
        version = exec_properties["production_version"]
        share = 0.5 if production else 1.0

        decoded = _decode("the new model", candidate, rows, batch_size, 0.0, share)
        predictions.write(folder / predictions.CANDIDATE, rows, decoded.answers)
        _tell_cut(decoded)
        models = {"candidate": _speed(candidate, decoded)}
        error = None
        if production:
            try:
                beside = _decode(
                    f"version {version}", Path(production), rows, batch_size, share, 1.0
                )
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
                predictions.write(folder / predictions.PRODUCTION, rows, beside.answers)
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
                "batch_size": batch_size,
                "device": device(),
                "models": models,
            },
        )


def _split(examples: Artifact) -> str:
    splits = artifact_utils.decode_split_names(examples.split_names)
    if SPLIT not in splits:
        raise UserError(
            f"there is no {SPLIT!r} split to decode (there are: {', '.join(splits)})",
            remedy="Give `data.test`, or let `data.split` make one.",
        )
    return artifact_utils.get_split_uri([examples], SPLIT)


def _decode(
    label: str, model: Path, rows: list[Row], batch_size: int, first: float, last: float
) -> Decoded:
    """Decodes with progress events whose fraction runs from ``first`` to ``last``."""
    told = time.monotonic()

    def progress(done: int, seconds: float) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told < SECONDS_BETWEEN_EVENTS and done < len(rows):
            return
        told = now
        speed = done / seconds if seconds else 0.0
        events.emit(
            "progress",
            node=NODE,
            text=f"{label}: {done:,} of {len(rows):,} sentences, {speed:,.0f} sentences/s",
            fraction=first + (last - first) * done / len(rows),
            sentences_per_second=round(speed, 1),
        )

    try:
        return decode(model, [row.source for row in rows], batch_size, progress)
    except SourceRefused as error:
        raise UserError(
            f"the test split cannot be decoded: {error}",
            where="search.long_source",
            remedy="Raise search.max_source_length, or let long_source: truncate cut them.",
        ) from None


def _tell_cut(decoded: Decoded) -> None:
    """Says how many sources the model has not read to their end."""
    cut = [answer.source_cut for answer in decoded.answers if answer.source_cut]
    if cut:
        events.emit(
            "warning",
            node=NODE,
            text=f"{len(cut):,} of {len(decoded.answers):,} sources are longer than "
            f"search.max_source_length: {sum(cut):,} pieces were not read",
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
