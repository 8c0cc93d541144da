"""A few rows of the test split to show, each as one would type it to ask the model again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

COUNT = 3
_CHARACTERS = 160  # longer inputs would fill the terminal


def examples(table: Path, data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows spread over a table of predictions, the same ones every time.

    Short ones where there are enough; only of those can one be shown on a line.

    Args:
        table: the file; the contract of its model lies beside it.
        data: the ``data`` section, whose folders hold the images.

    Returns:
        Of each row ``inputs`` (by name, as typed), ``hypothesis`` and ``references``. Nothing
        where the files cannot be read: a summary must not make a good run fail.
    """
    from components import predictions

    try:
        contract = predictions.read_summary(table.parent)["contract"]
        kinds = {entry["name"]: entry["kind"] for entry in contract["inputs"]}
        columns = predictions.read(table, [*kinds, "hypothesis", "references"])
    except (OSError, ValueError, LookupError):
        return []
    rows = range(len(columns["hypothesis"]))
    typed = [
        {name: _typed(columns[name][row], kind, data) for name, kind in kinds.items()}
        for row in rows
    ]
    lengths = [sum(map(len, inputs.values())) for inputs in typed]
    usable = [row for row in rows if all(map(_is_one_line, typed[row].values()))]
    short = [row for row in usable if lengths[row] <= _CHARACTERS]
    if not short:  # points are many characters: the shortest will do
        short = sorted(sorted(usable, key=lambda row: lengths[row])[:COUNT])
    step = max(1, len(short) // COUNT)
    return [
        {
            "inputs": typed[row],
            "hypothesis": columns["hypothesis"][row],
            "references": columns["references"][row],
        }
        for row in short[step // 2 :: step][:COUNT]
    ]


def arguments(example: Mapping[str, Any]) -> str:
    """The inputs of an example as words of a shell command."""
    texts = list(example["inputs"].values())
    words = " ".join(map(_word, texts))
    # Everything behind the dashes is an argument, whatever it begins with.
    return f"-- {words}" if any(text.startswith("-") for text in texts) else words


def lines(example: Mapping[str, Any]) -> tuple[list[str], str, list[str]]:
    """An example for people: its inputs, the answer, and the references where they differ."""
    inputs = [_shortened(text) for text in example["inputs"].values()]
    answer, references = example["hypothesis"], example["references"]
    wrong = [] if answer in references else [told(reference) for reference in references]
    return inputs, told(answer), wrong


def told(value: Any) -> str:
    """An answer or a reference in words: a text, a number, or positions."""
    if isinstance(value, str):
        return value
    return f"{value:.6g}" if isinstance(value, int | float) else " ".join(map(str, value))


def _typed(value: Any, kind: str, data: Mapping[str, Any]) -> str:
    """An input as a user would type it."""
    if kind == "image":
        from components.corpus_gen.images import Images

        return Images(data).place(value)
    # The sentences of a text may stand on lines of their own; one types them on one.
    return json.dumps(value) if kind == "points" else " ".join(value.split("\n"))


def _is_one_line(text: str) -> bool:
    return len(text.splitlines()) == 1 and bool(text.strip())


def _shortened(text: str) -> str:
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 1]}…"


def _word(text: str) -> str:
    """A text as one shell word; in double quotes where nothing in it needs more."""
    return shlex.quote(text) if set(text) & set('"\\$`!') else f'"{text}"'
