"""Rows of the test split to look at, as cards of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from components import predictions
from components.reporter import images
from components.reporter.difference import closest, differences
from components.reporter.facts import Facts
from components.reporter.ranking import Ranked

_TITLES = {"worst": "The worst", "chance": "By chance", "best": "The best"}
_MOST_WEIGHTS = 20_000  # of a row, that are put on the page; more could not be read anyway
_MOST_CHARACTERS = 1_200


def groups(facts: Facts, shown: Ranked) -> list[dict[str, Any]]:
    """The worst rows, some by chance, the best; each group with its title and its cards.

    A card has the row's ``inputs``; its ``answer`` and the nearest ``reference``, in parts that say
    what differs; how good it is (``told``), ``where`` it stood, and what its ``look`` is made of.
    """
    if facts.table is None:
        return []
    places = [row for rows in shown.groups.values() for row in rows]
    table = dict(zip(places, predictions.rows_at(facts.table, places), strict=True))
    return [
        {
            "name": name,
            "title": _TITLES[name],
            "cards": [_card(table[row], shown.told[row], facts) for row in rows],
        }
        for name, rows in shown.groups.items()
        if rows
    ]


def _card(row: Mapping[str, Any], told: str, facts: Facts) -> dict[str, Any]:
    contract = facts.predicted["contract"]
    answer, references = row["hypothesis"], row["references"]
    if contract["answer_kind"] == "text":
        shorts = [_short(reference) for reference in references]
        nearest = closest(_short(answer), shorts)
        cut = _short(answer) != answer or shorts[nearest] != references[nearest]
        parts = differences(_short(answer), shorts[nearest], cut)
    else:
        parts = [(_plain(answer), False)], [(_plain(references[0]), False)]
    score = row.get("score")
    if score is not None and contract["score"]:
        told += f" · log-probability {score:.2f}"
    inputs = [_input(row, entry, facts.about.config) for entry in contract["inputs"]]
    there = all(shown.get("source", "") is not None for shown in inputs)
    return {
        "where": ":".join((Path(row["file"]).name, str(row["line"]))) if row["file"] else "",
        "told": told,
        "inputs": inputs,
        "answer": parts[0],
        "reference": parts[1],
        "right": answer in references,
        "others": len(references) - 1,
        "look": look(row, contract) if there else None,
    }


def look(row: Mapping[str, Any], contract: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the page draws a row's look from; None where there is nothing, or too much, to draw."""
    outputs = {**row, contract["answer"]: row["hypothesis"]}
    drawn = contract.get("looks")
    kinds = {entry["name"]: entry["kind"] for entry in contract["inputs"]}
    if drawn and outputs.get(drawn["weights"]):
        names = [drawn["weights"], drawn["rows"], drawn["columns"]]
    else:
        names = [f"{side}_{what}" for side in kinds for what in ("weights", "pieces")]
        if not all(name in outputs for name in names):
            return None
    found = {name: outputs[name] for name in names if name not in kinds}
    if not all(_drawable(value) for value in found.values()):
        return None
    points = {name: row[name] for name, kind in kinds.items() if kind == "points"}
    return {
        "outputs": {name: _rounded(value) for name, value in found.items()},
        "inputs": {name: _rounded(value) for name, value in points.items()},
    }


def _input(
    row: Mapping[str, Any], entry: Mapping[str, Any], config: Mapping[str, Any]
) -> dict[str, Any]:
    name, kind = entry["name"], entry["kind"]
    value = row[name]
    shown: dict[str, Any] = {"name": name, "kind": kind}
    if kind == "image":
        return {**shown, "path": value, "source": images.address(value, config)}
    return {**shown, "text": _short(value) if kind == "text" else _plain(value)}


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"


def _plain(value: Any) -> str:
    """A number, positions or points as a text."""
    if isinstance(value, int | float):
        return f"{value:.4g}"
    if value and isinstance(value[0], Sequence):
        return " ".join(f"({x:.3g}, {y:.3g})" for x, y in value)
    return " → ".join(map(str, value)) or "(nothing)"


def _drawable(value: Any) -> bool:
    """Whether all is finite, and not more than one could see."""
    numbers = list(_leaves(value))
    finite = all(math.isfinite(one) for one in numbers if isinstance(one, int | float))
    return finite and len(numbers) <= _MOST_WEIGHTS


def _leaves(value: Any) -> Any:
    if not isinstance(value, list):
        yield value
        return
    for inner in value:
        yield from _leaves(inner)


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    return round(value, 4) if isinstance(value, float) else value
