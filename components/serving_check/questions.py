"""The rows that the exported model is asked once more, with the answers that were kept."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfx.types.artifact import Artifact

from components import predictions
from components.predictor.rows import read_images, test_split
from serving.saved_model import IN_MEMORY

_SHOWN_CHARACTERS = 60


def questions(answers: Path, examples: Artifact, count: int) -> list[dict[str, Any]]:
    """Rows spread evenly over the lengths, the shortest and the longest among them.

    Args:
        answers: the folder that the Predictor wrote.
        examples: what it read; the images come from there.
        count: how many rows, at most.

    Returns:
        Each as ``serving/check.py`` wants it, plain enough for JSON.
    """
    contract = predictions.read_summary(answers)["contract"]
    table = answers / predictions.CANDIDATE
    chosen = _spread(_lengths(table, contract), count)
    rows = predictions.rows_at(table, chosen)
    kinds = {entry["name"]: entry["kind"] for entry in contract["inputs"]}
    names = [name for name, kind in kinds.items() if kind == "image"]
    images = read_images(test_split(examples), names, chosen) if names else {}
    return [_question(row, contract, kinds, images.get(row["row"], {})) for row in rows]


def in_memory(model: Path, contract: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows that lie beside an exported model, with what it answered before it was exported.

    Args:
        model: the SavedModel's folder.
        contract: the model's.
    """
    kinds = {entry["name"]: entry["kind"] for entry in contract["inputs"]}
    file = model / IN_MEMORY
    if not file.exists():
        return []
    return [
        {
            "row": f"{number} of the Trainer",
            "inputs": row["inputs"],
            "shown": ", ".join(_shown(value, kinds[key]) for key, value in row["inputs"].items()),
            "answer": row["answer"],
            "kept_by": "in memory",
            "device": row["device"],
        }
        for number, row in enumerate(json.loads(file.read_text(encoding="utf-8")))
    ]


def _question(
    row: Mapping[str, Any],
    contract: Mapping[str, Any],
    kinds: Mapping[str, str],
    images: Mapping[str, bytes],
) -> dict[str, Any]:
    inputs = {name: row[name] for name in kinds}
    inputs |= {name: base64.b64encode(image).decode("ascii") for name, image in images.items()}
    outputs = contract["signatures"][contract["detail"]]["outputs"]
    kept = {name: row[name] for name in outputs if name in row}
    kept[contract["answer"]] = row["hypothesis"]
    if contract["score"] is not None:
        kept[contract["score"]] = row["score"]
    shown = ", ".join(_shown(row[name], kind) for name, kind in kinds.items())
    return {"row": row["row"], "inputs": inputs, "shown": shown, "answer": kept}


def _shown(value: Any, kind: str) -> str:
    if kind == "points":
        return f"{len(value)} points"
    short = value if len(value) <= _SHOWN_CHARACTERS else f"{value[: _SHOWN_CHARACTERS - 1]}…"
    return repr(short)


def _lengths(table: Path, contract: Mapping[str, Any]) -> list[int]:
    """What makes a row long: its size; where there is none, the characters of its texts."""
    if contract["size"]:
        return predictions.read(table, ["size"])["size"]
    texts = [entry["name"] for entry in contract["inputs"] if entry["kind"] == "text"]
    columns = predictions.read(table, ["row", *texts])
    rows = range(len(columns["row"]))
    return [sum(len(columns[name][row]) for name in texts) for row in rows]


def _spread(lengths: list[int], count: int) -> list[int]:
    order = sorted(range(len(lengths)), key=lambda row: (lengths[row], row))
    if len(order) <= count:
        return order
    step = (len(order) - 1) / max(1, count - 1)
    return [order[round(index * step)] for index in range(count)]
