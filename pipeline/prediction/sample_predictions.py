"""Choose rows of the test split to show after a run, as a user would type them."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

from regard.components.common import prediction_table
from regard.components.data.images import Images
from regard.core.formatting import truncate
from regard.core.kinds import KINDS
from regard.pipeline.prediction.output_format import format_value

COUNT = 3
_MAX_CHARACTERS = 160


class Sample(TypedDict):
    """A row: its inputs by name as typed text, the model's hypothesis, and the references."""

    inputs: dict[str, str]
    hypothesis: Any
    references: list[Any]


def select_samples(table: Path, data: Mapping[str, Any]) -> list[Sample]:
    """Select rows spread over a table of predictions, short ones if possible.

    The selection is deterministic.

    Args:
        table: the file; the contract of its model is in the same folder.
        data: the ``data`` section, whose folders contain the images.

    Returns:
        The rows; none if the files cannot be read, because a summary must not fail a run.
    """
    try:
        contract = prediction_table.read_summary(table.parent)["contract"]
        kinds = {entry["name"]: entry["kind"] for entry in contract["inputs"]}
        columns = prediction_table.read(table, [*kinds, "hypothesis", "references"])
    except (OSError, ValueError, LookupError):
        return []
    rows = range(len(columns["hypothesis"]))

    def typed_inputs(row: int) -> dict[str, str]:
        return {name: _to_text(columns[name][row], kind, data) for name, kind in kinds.items()}

    typed = [typed_inputs(row) for row in rows]
    lengths = [sum(map(len, inputs.values())) for inputs in typed]
    usable = [row for row in rows if all(map(_is_one_line, typed[row].values()))]
    selected = [row for row in usable if lengths[row] <= _MAX_CHARACTERS]
    if not selected:  # points take many characters: use the shortest rows
        selected = sorted(sorted(usable, key=lambda row: lengths[row])[:COUNT])
    step = max(1, len(selected) // COUNT)
    return [
        {
            "inputs": typed[row],
            "hypothesis": columns["hypothesis"][row],
            "references": columns["references"][row],
        }
        for row in selected[step // 2 :: step][:COUNT]
    ]


def shell_arguments(sample: Sample) -> str:
    """Return the inputs of a sample as arguments of a shell command."""
    texts = list(sample["inputs"].values())
    arguments = " ".join(map(_quote, texts))
    return f"-- {arguments}" if any(text.startswith("-") for text in texts) else arguments


def display_texts(sample: Sample) -> tuple[list[str], str, list[str]]:
    """Return the inputs, the hypothesis, and the references if none of them equals it."""
    inputs = [truncate(text, _MAX_CHARACTERS) for text in sample["inputs"].values()]
    hypothesis, references = sample["hypothesis"], sample["references"]
    is_correct = hypothesis in references
    others = [] if is_correct else [format_value(reference) for reference in references]
    return inputs, format_value(hypothesis), others


def _to_text(value: Any, kind: str, data: Mapping[str, Any]) -> str:
    """Return an input as a user would type it."""
    if KINDS[kind].names_file:
        root = os.path.expandvars(data.get("root") or ".")
        return Images(root, data.get("images")).path_of(value)
    return KINDS[kind].to_argument(value)


def _is_one_line(text: str) -> bool:
    return len(text.splitlines()) == 1 and bool(text.strip())


def _quote(text: str) -> str:
    """Quote a text for the shell, in double quotes if possible."""
    return shlex.quote(text) if set(text) & set('"\\$`!') else f'"{text}"'
