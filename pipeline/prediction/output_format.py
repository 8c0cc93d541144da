"""Format predictions as text, as JSON fields and as a table of attention weights."""

import itertools
import json
import math
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.cells import cell_len, set_cell_size

from regard.core.errors import UserError
from regard.pipeline.prediction.input_rows import InputRow
from regard.serving.contract import Contract, answer_kind
from regard.serving.saved_model import Prediction

SHADES = " ░▒▓█"
_NO_HYPOTHESIS = -1e8  # the score of missing hypotheses is below it
_TOP = 3  # source tokens in the narrow form of the table
_MIN_WEIGHT = 0.05  # lower weights are left out of the narrow form
_MAX_TOKEN_CELLS = 10
_RIGHT_TO_LEFT = {"R", "AL", "AN"}
_LEFT_TO_RIGHT_MARK = "\u200e"  # has no width


def format_value(value: Any) -> str:
    """Format a text, a number, or a list of positions."""
    if isinstance(value, str):
        return value
    return f"{value:.6g}" if isinstance(value, int | float) else " ".join(map(str, value))


def one_line(prediction: Prediction | None) -> str:
    """Return the predicted text, number or positions on one line; empty for no prediction."""
    return " ".join(format_value(prediction.hypothesis).splitlines()) if prediction else ""


def one_cell(value: Any) -> str:
    """Return an input on one line without tabs, as `regard score` reads it."""
    text = value if isinstance(value, str) else json.dumps(value)
    return " ".join(text.replace("\t", " ").splitlines())


def split_hypotheses(
    prediction: Prediction | None, count: int | None = None
) -> Sequence[Prediction | None]:
    """Return a prediction for each hypothesis of an n-best list, or the prediction alone.

    Args:
        prediction: the prediction; None for an empty row.
        count: the number of hypotheses; None: all.

    Raises:
        UserError: the list has fewer hypotheses.
    """
    if prediction is None:
        return [None]
    if "hypotheses" not in prediction.outputs:
        if (count or 1) > 1:
            remedy = f"Load it with another search: load_model(name, {{'n_best': {count}}})."
            raise UserError(f"This model returns 1 output, not {count}.", "--n-best", remedy)
        return [prediction]
    contract, outputs = prediction.contract, prediction.outputs
    size = len(outputs["hypotheses"])
    if count is not None and not 1 <= count <= size:
        message = f"This model lists its {size} best outputs, not {count}."
        raise UserError(message, "--n-best", f"Use a number from 1 to {size}.")
    scores = outputs["scores"]
    hypotheses = zip(outputs["hypotheses"], outputs["lengths"], strict=True)
    columns = {
        contract["answer"]: [_without_padding(value, length) for value, length in hypotheses],
        str(contract["score"]): outputs["log_probabilities"].tolist(),
    }
    if "begins" in outputs:  # answers in a passage, which no search has scored
        columns |= {"begin": outputs["begins"].tolist(), "end": outputs["ends"].tolist()}
    else:
        columns["search_score"] = scores.tolist()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    # To a blank question, all answers are empty and have the score NaN.
    rows = rows[: 1 if math.isnan(scores[0]) else count]
    # Not with `>`: a row with the score NaN remains.
    rows = [row for row, score in zip(rows, scores, strict=False) if not score <= _NO_HYPOTHESIS]
    return [Prediction(row, contract) for row in rows]


def _without_padding(value: Any, length: int) -> Any:
    """Return an output of an n-best list, whose lists have equal lengths."""
    return value if isinstance(value, str) else value[:length]


def json_fields(
    row: InputRow, prediction: Prediction | None, contract: Contract
) -> dict[str, object]:
    """Return a row and all outputs for it as JSON fields.

    The attention is one field: the weights with the names of their rows and columns. Outputs that
    only give the length of others are left out.
    """
    is_text = answer_kind(contract).is_text
    fields: dict[str, object] = dict(row.typed)
    fields[contract["answer"]] = (
        one_line(prediction) if is_text else prediction and prediction.hypothesis
    )
    if contract["score"] is not None:
        fields["score"] = prediction.score if prediction else None
    if prediction is None:
        return fields
    outputs, attention = prediction.outputs, contract["looks"]
    handled = {contract["answer"], contract["score"], *_length_outputs(contract)}
    if (entry := contract.get("confidence")) and entry["output"] in outputs:
        fields[entry["output"]] = prediction.confidence
        handled.add(entry["output"])
    if attention and attention["weights"] in outputs:
        sides = (attention["columns"], attention["rows"])
        labels = [name for name in sides if name in outputs and name not in handled]
        handled |= {attention["weights"], attention["rows"], attention["columns"]}
        fields[attention["weights"]] = {
            **{name.removesuffix("_pieces"): to_list(outputs[name]) for name in labels},
            "weights": to_list(outputs[attention["weights"]]),
        }
    others = {name: to_list(value) for name, value in outputs.items() if name not in handled}
    return {**fields, **others}


def _length_outputs(contract: Contract) -> set[str]:
    """Return the outputs that give the lengths of other outputs."""
    outputs = contract["signatures"][contract["detail"]]["outputs"].values()
    return {name for name in itertools.chain.from_iterable(outputs) if name is not None}


def to_list(value: Any) -> Any:
    """Return arrays and their numbers as plain values."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def draw_table(
    source: Sequence[str],
    target: Sequence[str],
    weights: Sequence[Sequence[float]],
    width: int = 80,
) -> list[str]:
    """Draw attention weights: a shaded matrix, or the top source tokens if that is too wide.

    Args:
        source: source tokens.
        target: target tokens.
        weights: ``[target, source]``; all zeros for a model without attention.
        width: the columns of the terminal.
    """
    if not source or not target:
        return []
    if not any(any(row) for row in weights):
        return ["(this model has no attention)"]
    heads = [_truncate(token, _MAX_TOKEN_CELLS) for token in source]
    names = [_truncate(token, 2 * _MAX_TOKEN_CELLS) for token in target]
    margin = max(map(cell_len, names))
    names = [" " * (margin - cell_len(name)) + name for name in names]
    widths = [max(2, cell_len(head)) for head in heads]
    if margin + 1 + sum(widths) + len(widths) > width:
        return _draw_narrow(source, names, weights)
    lines = [f"{' ' * margin}  {' '.join(map(set_cell_size, heads, widths))}"]
    for name, row in zip(names, weights, strict=True):
        blocks = [shade(weight) * cells for weight, cells in zip(row, widths, strict=True)]
        lines.append(f"{name}  {' '.join(blocks)}")
    return [line.rstrip() for line in lines]


def shade(weight: float) -> str:
    """Return the character for a weight between 0 and 1."""
    return SHADES[round(min(1.0, max(0.0, weight)) * (len(SHADES) - 1))]


def _draw_narrow(
    source: Sequence[str], names: list[str], weights: Sequence[Sequence[float]]
) -> list[str]:
    lines = []
    for name, row in zip(names, weights, strict=True):
        top = sorted(range(len(row)), key=lambda index: -row[index])[:_TOP]
        top = top[:1] + [index for index in top[1:] if row[index] >= _MIN_WEIGHT]
        text = ", ".join(
            f"{_printable(source[index])} ({index + 1}) {row[index]:.2f}" for index in top
        )
        lines.append(f"{name}  {text}")
    return lines


def _truncate(token: str, width: int) -> str:
    text = _printable(token)
    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 1)}…"


def _printable(token: str) -> str:
    """Return a token that stays within its own cells.

    Control characters become dots, a leading combining mark gets a circle, and right-to-left tokens
    are isolated so that a terminal does not reverse a sequence of them.
    """
    text = "".join(sign if sign.isprintable() else "·" for sign in token) or "·"
    if unicodedata.category(text[0]).startswith("M"):
        text = "◌" + text
    if any(unicodedata.bidirectional(sign) in _RIGHT_TO_LEFT for sign in text):
        text = f"{_LEFT_TO_RIGHT_MARK}{text}{_LEFT_TO_RIGHT_MARK}"
    return text
