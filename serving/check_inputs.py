"""The rows of a serving check: real rows, and extreme rows that a server must survive."""

import base64
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import NotRequired, TypedDict

from regard.serving.contract import Contract, input_kinds, text_inputs

LONG_CHARACTERS = 5000
_HEADS_ROWS = 2
_MAX_SHOWN = 60


class RequestRow(TypedDict):
    """A row in JSON: its number, inputs (images in base64), their summary, and earlier outputs.

    ``kept_by`` says which earlier run the outputs come from, by default the Predictor's.
    """

    row: int | str
    inputs: Mapping[str, Any]
    description: str
    answer: Mapping[str, Any]
    kept_by: NotRequired[str]
    device: NotRequired[str]


@dataclasses.dataclass(frozen=True)
class CheckRow:
    """A row to run.

    Attributes:
        name: the row in an error message.
        inputs: values by input name.
        description: a short text of the inputs.
        expected: the outputs of an earlier run by name; empty if there was none.
        expected_from: the earlier run.
    """

    name: str
    inputs: Mapping[str, Any]
    description: str
    expected: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    expected_from: str = "of the Predictor"


def parse_row(row: RequestRow, contract: Contract) -> CheckRow:
    """Convert a row from JSON, which has images in base64."""
    inputs = dict(row["inputs"])
    for name, kind in input_kinds(contract).items():
        if kind.names_file:
            inputs[name] = base64.b64decode(inputs[name])
    source = row.get("kept_by", CheckRow.expected_from)
    return CheckRow(f"row {row['row']}", inputs, row["description"], row["answer"], source)


def rows_for_signature(
    signature: str,
    rows: Sequence[CheckRow],
    outputs: Sequence[Mapping[str, Any]],
    contract: Contract,
) -> list[CheckRow]:
    """Return the rows with the inputs of one signature.

    The signature with the attention of all heads gets few rows, because its outputs are large.

    Args:
        signature: its name.
        rows: rows with the model's inputs, real rows first.
        outputs: the outputs for the rows, needed if an input of the signature repeats an output.
        contract: the model's contract.
    """
    heads = contract.get("heads")
    if heads is not None and heads["signature"] == signature:
        rows = rows[:_HEADS_ROWS]
    entries = contract["signatures"][signature]["inputs"]
    if not any("like" in entry or "default" in entry for entry in entries):
        return list(rows)
    defaults = {entry["name"]: entry["default"] for entry in entries if "default" in entry}
    converted = []
    for row, row_outputs in zip(rows, outputs, strict=False):
        values = {**defaults, **row.inputs, **row_outputs}
        inputs = {entry["name"]: values[entry.get("like", entry["name"])] for entry in entries}
        converted.append(dataclasses.replace(row, inputs=inputs, expected={}))
    return converted


def create_extreme_rows(
    rows: Sequence[CheckRow], contract: Contract, has_long_row: bool = True
) -> list[CheckRow]:
    """Create a row of empty texts and a row of very long texts.

    Inputs that are not text come from the first real row. For points and images there are no
    extreme rows: the real rows include the fewest and the most points.

    Args:
        rows: the real rows.
        contract: the model's contract.
        has_long_row: whether there is the row of very long texts.
    """
    texts = text_inputs(contract)
    if not texts or (len(texts) < len(contract["inputs"]) and not rows):
        return []
    others = rows[0].inputs if rows else {}
    empty = {**others, **dict.fromkeys(texts, "")}
    empty_row = CheckRow("the empty row", empty, ", ".join(["''"] * len(texts)))
    if not has_long_row:
        return [empty_row]
    long = {name: create_long_text([row.inputs[name] for row in rows]) for name in texts}
    description = ", ".join(repr(f"{long[name][: _MAX_SHOWN - 1]}…") for name in texts)
    return [empty_row, CheckRow("the long row", {**others, **long}, description)]


def create_long_text(texts: Sequence[str]) -> str:
    """Repeat real texts up to ``LONG_CHARACTERS`` characters."""
    text = " ".join(texts) or "a"
    return (f"{text} " * (LONG_CHARACTERS // len(text) + 1))[:LONG_CHARACTERS].strip()
