"""Example rows of the test split: the worst, the best and a random sample, as cards of the page."""

from __future__ import annotations

import base64
import dataclasses
import io
import math
import os
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.components.common import prediction_table
from regard.components.data.images import Images
from regard.components.evaluator.predictions import read_rows
from regard.components.reporter.run_facts import RunFacts
from regard.components.reporter.tables import format_share
from regard.components.reporter.text_diff import Part, closest_text, diff_texts
from regard.core.features import Kind
from regard.core.formatting import format_metric, truncate
from regard.core.kinds import KINDS
from regard.models.metrics import METRICS, MetricOptions, Rows
from regard.serving import attention_heads, saved_model
from regard.serving.contract import SavedModelError, answer_kind, input_kinds
from regard.serving.session import SessionError

if TYPE_CHECKING:
    import numpy as np

GROUP_SIZE = 6
MAX_SCORED_ROWS = 20_000  # rows that are scored one by one, spread over the split
_SEED = 17
_MAX_WEIGHTS = 20_000  # of a row on the page; a larger map would be unreadable
_MAX_CHARACTERS = 1_200
_MAX_IMAGE_SIZE = 480  # pixels


@dataclasses.dataclass(frozen=True)
class CardInput:
    """One input of a row: a text, or the path of an image and its data URL (None: missing)."""

    name: str
    kind: Kind
    text: str
    url: str | None = None


@dataclasses.dataclass(frozen=True)
class Card:
    """One row.

    Attributes:
        location: the file and the line of the row.
        score: the score as text.
        inputs: the inputs of the row.
        output: the parts of the prediction that equal or differ from the reference.
        reference: the same for the closest reference.
        is_correct: whether the prediction equals a reference.
        other_references: the number of further references.
        attention: the data of the attention map; None if there is nothing to draw.
    """

    location: str
    score: str
    inputs: Sequence[CardInput]
    output: Sequence[Part]
    reference: Sequence[Part]
    is_correct: bool
    other_references: int
    attention: Mapping[str, object] | None


def select_rows(facts: RunFacts, table: Path) -> dict[str, dict[int, str]]:
    """Select rows of a table: for each group, their scores as texts by row number."""
    rows = read_rows(table, prediction_table.read_summary(table.parent)["contract"])
    count = len(rows.hypotheses)
    numbers = range(0, count, math.ceil(count / MAX_SCORED_ROWS) or 1)
    rows = rows.take(numbers) if len(numbers) < count else rows
    values, texts = score_rows(rows, facts.metrics.get("metrics", {}), facts.config)
    references = [texts[0] for texts in rows.references]
    lengths = [len(value) if isinstance(value, Sequence) else 0 for value in references]
    return {
        title: {numbers[at]: texts[at] for at in indices}
        for title, indices in choose_groups(values, lengths).items()
    }


def score_rows(
    rows: Rows, metric_names: Iterable[str], config: Mapping[str, Any]
) -> tuple[list[float], list[str]]:
    """Score each row; higher is better, and undefined scores are the worst.

    Texts are scored by chrF, which is meaningful for single sentences; numbers by their absolute
    error; positions by the first metric of the run that is defined for single rows.

    Args:
        rows: the predictions.
        metric_names: the metrics of the run.
        config: the whole configuration.

    Returns:
        The scores, and the same as texts.
    """
    if rows.output_kind.is_number:
        pairs = zip(rows.hypotheses, rows.references, strict=True)
        errors = [abs(output - references[0]) for output, references in pairs]
        texts = [f"error {e:.3g}" if math.isfinite(e) else "undefined" for e in errors]
        return [-error if math.isfinite(error) else -math.inf for error in errors], texts
    options = MetricOptions(lowercase=config.get("evaluation", {}).get("lowercase", False))
    names = ["chrf"] if rows.output_kind.is_text else [*metric_names, "exact_match"]
    specs = (METRICS[name] for name in names if name in METRICS)
    metric = next(
        spec for spec in specs if spec.supports(rows.output_kind) and not spec.needs_attention
    )
    statistics = metric.compute(rows, options)
    if statistics.is_exact and statistics.rows is not None:
        values = [statistics.value(row) for row in statistics.rows]
    else:  # the metric's function handles undefined rows, such as a tour that omits a city
        indices = range(len(rows.hypotheses))
        values = [metric.compute(rows.take([at]), options).corpus_value() for at in indices]
    sign = 1.0 if metric.higher_is_better else -1.0
    texts = [f"{metric.label} {format_metric(value, metric.scale)}" for value in values]
    return [sign * value if math.isfinite(value) else -math.inf for value in values], texts


def choose_groups(scores: Sequence[float], lengths: Sequence[int]) -> dict[str, list[int]]:
    """Choose random, the worst and the best rows without overlap; of equal ones the longest.

    The random rows begin with the one whose score is nearest to the median of all rows.
    """
    order = sorted(range(len(scores)), key=lambda row: (scores[row], -lengths[row]))
    worst = order[:GROUP_SIZE]
    rest = sorted(set(order) - set(worst), key=lambda row: (-scores[row], -lengths[row]))
    best, rest = rest[:GROUP_SIZE], rest[GROUP_SIZE:]
    sample = sorted(random.Random(_SEED).sample(rest, min(GROUP_SIZE, len(rest))))
    ranks = {row: rank for rank, row in enumerate(order)}
    sample.sort(key=lambda row: abs(ranks[row] - len(order) // 2))
    return {"Random sample": sample, "Worst": worst, "Best": best}


def make_cards(facts: RunFacts) -> dict[str, list[Card]]:
    """Select rows, and make a card of each, in groups by title."""
    if facts.table is None:
        return {}
    groups = select_rows(facts, facts.table)
    numbers = [row for scores in groups.values() for row in scores]
    rows = dict(zip(numbers, prediction_table.rows_at(facts.table, numbers), strict=True))
    cards = {
        title: [_make_card(rows[row], score, facts) for row, score in scores.items()]
        for title, scores in groups.items()
        if scores
    }
    firsts = [rows[next(iter(scores))] for scores in groups.values() if scores]
    for group, heads in zip(cards.values(), _predict_heads(facts, firsts), strict=True):
        if heads and group[0].attention:
            attention = {**group[0].attention, "heads": heads}
            group[0] = dataclasses.replace(group[0], attention=attention)
    return cards


def _predict_heads(
    facts: RunFacts, rows: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any] | None]:
    """The weights of all heads for the predictions of rows of texts; None: not available."""
    from tfx.utils import path_utils

    inputs, folder = facts.contract["inputs"], facts.folders.get("model")
    is_text = all(kind.is_text for kind in input_kinds(facts.contract).values())
    if not (folder and is_text and facts.contract.get("heads")):
        return [None] * len(rows)
    try:
        model = saved_model.load(path_utils.serving_model_path(str(folder)), few_runs=True)
    except (SavedModelError, SessionError):  # the report of a failed run
        return [None] * len(rows)
    return [
        attention_heads.head_weights(
            model, {entry["name"]: row[entry["name"]] for entry in inputs}, row["hypothesis"]
        )
        for row in rows
    ]


def _make_card(row: Mapping[str, Any], score: str, facts: RunFacts) -> Card:
    contract = facts.contract
    output, references = row["hypothesis"], row["references"]
    if answer_kind(contract).is_text:
        texts = [truncate(reference, _MAX_CHARACTERS) for reference in references]
        text = truncate(output, _MAX_CHARACTERS)
        nearest = closest_text(text, texts)
        truncated = text != output or texts[nearest] != references[nearest]
        parts = diff_texts(text, texts[nearest], truncated)
    else:
        parts = [(_format_value(output), False)], [(_format_value(references[0]), False)]
    log_probability = row.get("score")
    if log_probability is not None and contract["score"]:
        tokens = row.get((contract.get("looks") or {}).get("rows", ""))
        if tokens and contract.get("scored"):
            mean = math.exp(log_probability / len(tokens))
            score += f" · mean token probability {format_share(mean)}"
        else:
            score += f" · log-probability {log_probability:.2f}"
    inputs = [
        make_input(row[entry["name"]], entry["name"], KINDS[entry["kind"]], facts.config)
        for entry in contract["inputs"]
    ]
    is_available = all(entry.url is not None or not entry.kind.names_file for entry in inputs)
    return Card(
        location=f"{Path(row['file']).name}:{row['line']}" if row["file"] else "",
        score=score,
        inputs=inputs,
        output=parts[0],
        reference=parts[1],
        is_correct=output in references,
        other_references=len(references) - 1,
        attention=attention_data(row, contract) if is_available else None,
    )


def attention_data(
    row: Mapping[str, Any], contract: Mapping[str, Any]
) -> dict[str, dict[str, object]] | None:
    """The data of a row's attention map; None if it is missing, not finite, or too large."""
    import numpy as np

    outputs = {**row, contract["answer"]: row["hypothesis"]}
    attention_entry = contract.get("looks")
    kinds = input_kinds(contract)
    if attention_entry and outputs.get(attention_entry["weights"]):
        names = [attention_entry["weights"], attention_entry["rows"], attention_entry["columns"]]
    else:
        names = [f"{side}_{what}" for side in kinds for what in ("weights", "pieces")]
        if not all(name in outputs for name in names):
            return None
    arrays = {name: np.asarray(outputs[name]) for name in names if name not in kinds}
    for array in arrays.values():
        is_finite = array.dtype.kind != "f" or np.isfinite(array).all()
        if not is_finite or array.size > _MAX_WEIGHTS:
            return None
    numbers = {name: np.asarray(row[name]) for name, kind in kinds.items() if kind.has_length}
    return {
        "outputs": {name: _round(array) for name, array in arrays.items()},
        "inputs": {name: _round(array) for name, array in numbers.items()},
    }


def small_jpeg(path: str, config: Mapping[str, Any]) -> bytes | None:
    """Read an image as a small JPEG; None if it is missing or invalid.

    Args:
        path: the path in the row.
        config: the whole configuration; its section ``data`` locates the images.
    """
    from PIL import Image

    data = config.get("data", {})
    try:
        images = Images(os.path.expandvars(data.get("root") or "."), data.get("images"))
        with Image.open(images.path_of(path)) as file:
            file.draft("RGB", (_MAX_IMAGE_SIZE, _MAX_IMAGE_SIZE))  # decodes a JPEG at this size
            image = file.convert("RGB")
    # Pillow's errors for files that are not images, are damaged, or are far too large.
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return None
    image.thumbnail((_MAX_IMAGE_SIZE, _MAX_IMAGE_SIZE))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def make_input(value: Any, name: str, kind: Kind, config: Mapping[str, Any]) -> CardInput:
    """Return an input of a row as the page shows it; an image as a small JPEG."""
    if kind.names_file:
        content = small_jpeg(value, config)
        data = base64.b64encode(content or b"").decode("ascii")
        return CardInput(name, kind, value, f"data:image/jpeg;base64,{data}" if content else None)
    text = truncate(value, _MAX_CHARACTERS) if kind.is_text else _format_value(value)
    return CardInput(name, kind, text)


def _format_value(value: Any) -> str:
    """A number, positions or points as text."""
    if isinstance(value, int | float):
        return f"{value:.4g}"
    if value and isinstance(value[0], Sequence):
        points = (", ".join(f"{coordinate:.3g}" for coordinate in point) for point in value)
        return " ".join(f"({point})" for point in points)
    return " → ".join(map(str, value)) or "(empty)"


def _round(array: np.ndarray) -> object:
    return (array.round(4) if array.dtype.kind == "f" else array).tolist()
