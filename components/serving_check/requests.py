"""The rows of a serving check, with the outputs of earlier runs."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfx.types.artifact import Artifact

from regard.components.common import prediction_table
from regard.components.common.formatting import truncate
from regard.components.predictor.split_reader import read_images, test_split
from regard.serving.check_inputs import RequestRow
from regard.serving.contract import IN_MEMORY, Contract, input_kinds


def sample_rows(predictions: Path, examples: Artifact, count: int) -> list[RequestRow]:
    """Return rows of all lengths, including the shortest and the longest.

    Args:
        predictions: the folder of the Predictor.
        examples: the examples of the predictions, which contain the images.
        count: the maximum number of rows.
    """
    contract = prediction_table.read_summary(predictions)["contract"]
    table = predictions / prediction_table.CANDIDATE
    indices = _sample_by_length(_lengths(table, contract), count)
    rows = prediction_table.rows_at(table, indices)
    names = [name for name, kind in input_kinds(contract).items() if kind == "image"]
    images = read_images(test_split(examples), names, indices) if names else {}
    return [_request_row(row, contract, images.get(row["row"], {})) for row in rows]


def exported_rows(model: Path, contract: Contract) -> list[RequestRow]:
    """Return the rows that the Trainer stored with a model, with its outputs before the export.

    Args:
        model: the SavedModel's folder.
        contract: the model's contract.
    """
    kinds = input_kinds(contract)
    file = model / IN_MEMORY
    if not file.exists():
        return []
    return [
        {
            "row": f"{number} of the Trainer",
            "inputs": row["inputs"],
            "description": ", ".join(
                _summarize(value, kinds[key]) for key, value in row["inputs"].items()
            ),
            "answer": row["answer"],
            "kept_by": "in memory",
            "device": row["device"],
        }
        for number, row in enumerate(json.loads(file.read_text(encoding="utf-8")))
    ]


def _request_row(
    row: Mapping[str, Any], contract: Contract, images: Mapping[str, bytes]
) -> RequestRow:
    kinds = input_kinds(contract)
    inputs = {name: row[name] for name in kinds}
    inputs |= {name: base64.b64encode(image).decode("ascii") for name, image in images.items()}
    outputs = contract["signatures"][contract["detail"]]["outputs"]
    expected = {name: row[name] for name in outputs if name in row}
    expected[contract["answer"]] = row["hypothesis"]
    if contract["score"] is not None:
        expected[contract["score"]] = row["score"]
    description = ", ".join(_summarize(row[name], kind) for name, kind in kinds.items())
    return {"row": row["row"], "inputs": inputs, "description": description, "answer": expected}


def _summarize(value: Any, kind: str) -> str:
    if kind == "points":
        return f"{len(value)} points"
    return repr(truncate(value))


def _lengths(table: Path, contract: Contract) -> list[int]:
    """Return the size of each row; without a size, the characters of its texts."""
    if contract["size"]:
        return prediction_table.read(table, ["size"])["size"]
    texts = [name for name, kind in input_kinds(contract).items() if kind == "text"]
    columns = prediction_table.read(table, ["row", *texts])
    rows = range(len(columns["row"]))
    return [sum(len(columns[name][row]) for name in texts) for row in rows]


def _sample_by_length(lengths: list[int], count: int) -> list[int]:
    """Return row indices spread evenly over the order by length."""
    order = sorted(range(len(lengths)), key=lambda row: (lengths[row], row))
    if len(order) <= count:
        return order
    step = (len(order) - 1) / max(1, count - 1)
    return [order[round(index * step)] for index in range(count)]
