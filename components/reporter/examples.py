"""Rows of the test split to look at: the worst, the best, and some by chance."""

from __future__ import annotations

import base64
import io
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from components import predictions
from components.corpus_gen.images import Images
from components.evaluator.answers import answered
from components.reporter import words
from components.reporter.difference import closest, differences
from components.reporter.facts import Facts
from models.metrics import METRICS, Rows

SHOWN = 6
_SEED = 17
_MOST_WEIGHTS = 20_000  # of a row, that are put on the page; more could not be read anyway
_MOST_CHARACTERS = 1_200
_WIDEST = 480  # pixels of an image


def groups(facts: Facts) -> list[dict[str, Any]]:
    """The worst rows, some by chance, the best; each group with its title and its cards.

    A card has the row's ``inputs``; its ``answer`` and the nearest ``reference``, in parts that say
    what differs; how good it is (``told``), ``where`` it stood, and what its ``look`` is made of.
    """
    path, contract = facts.table, facts.predicted.get("contract", {})
    if path is None:
        return []
    found, told = _judged(facts)
    places = [row for chosen in found.values() for row in chosen]
    table = dict(zip(places, predictions.rows_at(path, places), strict=True))
    titles = {"worst": "The worst", "chance": "By chance", "best": "The best"}
    return [
        {
            "name": name,
            "title": titles[name],
            "cards": [_card(table[row], told[row], contract, facts) for row in rows],
        }
        for name, rows in found.items()
        if rows
    ]


def chosen(facts: Facts) -> dict[str, list[int]]:
    """The rows of each group, by the group's name; nothing where no rows were answered."""
    return _judged(facts)[0] if facts.table else {}


def _judged(facts: Facts) -> tuple[dict[str, list[int]], list[str]]:
    """The rows that are shown, and of all rows how good they are, in words."""
    assert facts.table is not None
    rows = answered(facts.table, facts.predicted["contract"])
    values, told = quality(rows, facts.metrics.get("metrics", {}), facts.about.config)
    return choose(values, [_length(rows, row) for row in range(len(values))]), told


def quality(
    rows: Rows, found: Iterable[str], config: Mapping[str, Any]
) -> tuple[list[float], list[str]]:
    """How good each answer is, the higher the better, and the same in words.

    Texts are judged by chrF, which says something of single sentences; numbers by their distance;
    positions by the first metric of the run that can be told of single rows.

    Args:
        rows: the answers.
        found: the metrics of the run, by name.
        config: the whole configuration.
    """
    if rows.answers == "number":
        errors = [abs(got - wanted[0]) for got, wanted in _pairs(rows)]
        return [-error for error in errors], [f"off by {error:.3g}" for error in errors]
    names = ["chrf"] if rows.answers == "text" else [*found, "exact_match"]
    options = {"lowercase": config.get("evaluation", {}).get("lowercase", False)}
    kind, statistics = next(
        (kind, kind.statistics(rows, options))
        for kind in (METRICS[name] for name in names if name in METRICS)
        if kind.statistics and kind.judges(rows.answers) and not kind.looks
    )
    values = [statistics.value(row) for row in statistics.rows]
    sign = 1.0 if kind.higher_is_better else -1.0
    told = [f"{kind.label} {words.number(value, kind.scale)}" for value in values]
    return [sign * value if value == value else float("-inf") for value in values], told


def choose(values: Sequence[float], lengths: Sequence[int]) -> dict[str, list[int]]:
    """Which rows are shown: ``worst``, ``chance`` and ``best``, none of them twice.

    Of equally good ones the longest: they show more.
    """
    order = sorted(range(len(values)), key=lambda row: (values[row], -lengths[row]))
    worst = order[:SHOWN]
    left = sorted(set(order) - set(worst), key=lambda row: (-values[row], -lengths[row]))
    best = left[:SHOWN]
    rest = left[SHOWN:]
    chance = sorted(random.Random(_SEED).sample(rest, min(SHOWN, len(rest))))
    return {"worst": worst, "chance": chance, "best": best}


def _card(
    row: Mapping[str, Any], told: str, contract: Mapping[str, Any], facts: Facts
) -> dict[str, Any]:
    answer, references = row["hypothesis"], row["references"]
    if contract["answer_kind"] == "text":
        nearest = references[closest(answer, references)]
        parts = differences(_short(answer), _short(nearest))
    else:
        nearest = references[0]
        parts = [(_plain(answer), False)], [(_plain(nearest), False)]
    score = row.get("score")
    if score is not None and contract["score"]:
        told += f" · log-probability {score:.2f}"
    return {
        "where": ":".join((Path(row["file"]).name, str(row["line"]))) if row["file"] else "",
        "told": told,
        "inputs": [_input(row, entry, facts) for entry in contract["inputs"]],
        "answer": parts[0],
        "reference": parts[1],
        "right": answer in references,
        "others": len(references) - 1,
        "look": look(row, contract),
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
    if any(_count(value) > _MOST_WEIGHTS for value in found.values()):
        return None
    points = {name: row[name] for name, kind in kinds.items() if kind == "points"}
    return {
        "outputs": {name: _rounded(value) for name, value in found.items()},
        "inputs": {name: _rounded(value) for name, value in points.items()},
    }


def _input(row: Mapping[str, Any], entry: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    name, kind = entry["name"], entry["kind"]
    value = row[name]
    shown: dict[str, Any] = {"name": name, "kind": kind}
    if kind == "image":
        return {**shown, "path": value, "source": _image(value, facts.about.config)}
    return {**shown, "text": _short(value) if kind == "text" else _plain(value)}


def image_file(path: str, config: Mapping[str, Any]) -> Path | None:
    """The file of an image that a row names; None where it is not there any more."""
    file = Path(Images(config.get("data", {})).place(path))
    return file if file.is_file() else None


def _image(path: str, config: Mapping[str, Any]) -> str | None:
    """An image as an address that holds all of it; None where it is not to be had."""
    from PIL import Image, UnidentifiedImageError

    file = image_file(path, config)
    if file is None:
        return None
    try:
        with Image.open(file) as opened:
            image = opened.convert("RGB")
    except (OSError, UnidentifiedImageError):
        return None
    image.thumbnail((_WIDEST, _WIDEST))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"


def _pairs(rows: Rows) -> Iterable[tuple[Any, Sequence[Any]]]:
    return zip(rows.hypotheses, rows.references, strict=True)


def _length(rows: Rows, row: int) -> int:
    wanted = rows.references[row][0]
    return len(wanted) if isinstance(wanted, Sequence) else 0


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"


def _plain(value: Any) -> str:
    """A number, positions or points as a text."""
    if isinstance(value, int | float):
        return f"{value:.4g}"
    if value and isinstance(value[0], Sequence):
        return " ".join(f"({x:.3g}, {y:.3g})" for x, y in value)
    return " → ".join(map(str, value)) or "(nothing)"


def _count(value: Any) -> int:
    return sum(map(_count, value)) if isinstance(value, list) else 1


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    return round(value, 4) if isinstance(value, float) else value
