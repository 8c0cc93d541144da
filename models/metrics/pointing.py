"""Whether a captioner looks at what it is speaking of."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from models.metrics.base import Rows, Statistics

# SentencePiece's sign for the space before a word.
_MARK = "\u2581"
_END = "</s>"


def pointing(rows: Rows, options: Mapping[str, Any]) -> tuple[float, str]:
    """The share of the attention of a thing's words that lies inside the thing's box, 0 to 1.

    Known boxes make it measurable (Liu et al. 2017, "Attention Correctness in Neural Image
    Captioning", §4.1). It reads the columns ``pieces`` and ``alignment`` ``[pieces, height,
    width]`` of the model, and ``boxes``, JSON: a list of ``{"phrase": ..., "box": [left, top,
    right, bottom]}`` in shares of the image. A phrase counts once, where it first stands in the
    caption; one that does not stand there does not count.

    Raises:
        ValueError: a column is missing.
    """
    shares = _shares(rows)
    asked = sum(len(row) for row in shares)
    named = [share for row in shares for share in row if share is not None]
    signature = f"phrases:{asked}|named:{len(named)}"
    if not named:
        return float("nan"), f"{signature}|undefined:no phrase of the boxes is in a caption"
    return sum(named) / len(named), signature


def pointing_summed(rows: Rows, options: Mapping[str, Any]) -> Statistics:
    """Of each row the sum of its shares, and how many there are."""
    import numpy as np

    named = [[share for share in row if share is not None] for row in _shares(rows)]
    pairs = np.array([[sum(row), len(row)] for row in named], "float64")
    return Statistics(pairs, lambda total: float(total[0] / total[1]) if total[1] else math.nan)


def _shares(rows: Rows) -> list[list[float | None]]:
    """Of each row's phrases the share inside the box; None of one that the caption has not."""
    missing = [name for name in ("pieces", "alignment", "boxes") if name not in rows.columns]
    if missing:
        raise ValueError(f"pointing needs the column {missing[0]!r}, and there is none")
    found = []
    columns = zip(*(rows.columns[name] for name in ("pieces", "alignment", "boxes")), strict=True)
    for pieces, alignment, boxes in columns:
        row: list[float | None] = []
        for entry in json.loads(boxes) if boxes else []:
            place = _find(pieces, entry["phrase"])
            inside = None if place is None else [alignment[i] for i in place]
            row.append(None if inside is None else _inside(inside, entry["box"]))
        found.append(row)
    return found


def _find(pieces: Sequence[str], phrase: str) -> range | None:
    """The pieces that a phrase of whole words is made of, where it first stands."""
    words: list[tuple[str, int, int]] = []  # the word, its first piece and the one behind it
    for i, piece in enumerate(pieces):
        if piece == _END:
            break
        if piece.startswith(_MARK) or not words:
            words.append((piece.replace(_MARK, ""), i, i + 1))
        else:
            before, start, _ = words[-1]
            words[-1] = (before + piece, start, i + 1)
    wanted = phrase.split()
    for i in range(len(words) - len(wanted) + 1):
        if [word for word, _, _ in words[i : i + len(wanted)]] == wanted:
            return range(words[i][1], words[i + len(wanted) - 1][2])
    return None


def _inside(grids: Sequence[Any], box: Sequence[float]) -> float:
    """The share of all weight of some grids that lies inside a box."""
    import numpy as np

    weights = np.sum([np.asarray(grid, dtype="float64") for grid in grids], axis=0)
    height, width = weights.shape
    left, top, right, bottom = box
    # How much of each row and column of the grid is between the edges.
    across = _overlap(left * width, right * width, width)
    down = _overlap(top * height, bottom * height, height)
    total = float(weights.sum())
    return float(down @ weights @ across) / total if total > 0 else 0.0


def _overlap(start: float, end: float, cells: int) -> Any:
    import numpy as np

    edges = np.arange(cells)
    return np.clip(np.minimum(end, edges + 1) - np.maximum(start, edges), 0.0, 1.0)
