"""Metrics of attention: alignment error rate of translations, and pointing of captions.

Och and Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models", §4.1: the
alignment error rate of links A against sure links S and possible links P ⊇ S is
1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from regard.models.metrics.base import GoldAlignment, MetricOptions, Rows, Statistics, ratio
from regard.models.reference_columns import ALIGNMENT, SOURCE, TARGET

if TYPE_CHECKING:
    import numpy as np

# SentencePiece's sign for the space before a word.
_WORD_START = "\u2581"
_END = "</s>"
_LINK = re.compile(r"(\d+)([-p])(\d+)")
Links = set[tuple[int, int]]


def alignment_error_rate(rows: Rows, options: MetricOptions) -> Statistics:
    """Compute the alignment error rate, 0 to 1; lower is better.

    The statistics of a row are |A ∩ S|, |A ∩ P|, |A| and |S|. Each target word (or character) has
    one link: to the source word with most of its attention, which is summed over the tokens of the
    source word and averaged over the tokens of the target word. The end token is not a word. With
    the option ``targets: gold`` only target words with a gold link have one, which suits gold links
    of some words only.

    Args:
        rows: with the columns ``forced_alignment`` ``[target, source]``, ``forced_source_pieces``,
            ``forced_target_pieces`` and the gold links in Pharaoh's format, ``0-0 1-2 2p3``:
            source, then target, from 0; ``p`` marks a possible link.
        options: ``alignment`` names the gold column, the unit, the target words, and the layer and
            head.

    Raises:
        ValueError: there are no gold links, or a link cannot be parsed.
    """
    import numpy as np

    if options.alignment is None:
        raise ValueError("aer needs evaluation.alignment, which names the column of gold links")
    gold = options.alignment.gold
    row_counts: list[tuple[int, int, int, int] | None] = [None] * len(rows.hypotheses)
    if all(name in rows.columns for name in (ALIGNMENT, SOURCE, TARGET)):
        columns = (rows.columns[name] for name in (ALIGNMENT, SOURCE, TARGET, gold))
        row_counts = [
            _link_counts(weights, source, target, links, options.alignment)
            for weights, source, target, links in zip(*columns, strict=True)
        ]
    counts = np.array([row or (0, 0, 0, 0) for row in row_counts], "float64").reshape(-1, 4)
    scored = sum(row is not None for row in row_counts)
    names = ("unit", "targets", "layer", "head")
    settings = {name: getattr(options.alignment, name) for name in names}
    parts = [f"{name}:{value}" for name, value in settings.items() if value is not None]
    signature = "|".join([*parts, f"rows:{scored} of {len(row_counts)}"])
    if not counts[:, 2:].any():
        signature += "|undefined:no links"
    return Statistics(signature, counts, lambda total: _error_rate(total.tolist()))


def _error_rate(totals: Sequence[float]) -> float:
    sure, possible, links, gold = totals
    return 1.0 - (sure + possible) / (links + gold) if links + gold else math.nan


def _link_counts(
    weights: Any,
    source: Sequence[str] | None,
    target: Sequence[str] | None,
    gold: str,
    options: GoldAlignment,
) -> tuple[int, int, int, int] | None:
    """Return the four counts of a row; None if its tokens do not match the gold links."""
    import numpy as np

    if not gold or source is None or target is None:
        return None
    sure, possible = _parse_links(gold)
    (source_units, target_units), sizes = zip(
        *(_unit_of_tokens(x, options.unit) for x in (source, target)), strict=True
    )
    if any(s >= sizes[0] or t >= sizes[1] for s, t in possible):
        return None  # the text was normalised or truncated
    linked = {t for _, t in possible} if options.targets == "gold" else range(sizes[1])
    grid = _unit_weights(np.asarray(weights, "float64"), source_units, target_units, sizes)
    links = {(int(grid[t].argmax()), t) for t in linked if grid[t].max() > 0}
    return len(links & sure), len(links & possible), len(links), len(sure)


def _unit_weights(
    weights: np.ndarray, source: list[int], target: list[int], sizes: Sequence[int]
) -> np.ndarray:
    """Convert weights of tokens ``[target, source]`` to weights of units; tokens of none drop."""
    import numpy as np

    pairs = zip(sizes, (source, target), strict=True)
    sums = [np.equal.outer(range(size), units).astype("float64") for size, units in pairs]
    means = sums[1] / np.maximum(sums[1].sum(axis=1, keepdims=True), 1.0)
    return means @ weights[: len(target), : len(source)] @ sums[0].T


def _unit_of_tokens(tokens: Sequence[str], unit: str) -> tuple[list[int], int]:
    """Return the index of the word or character of each token, and the number of units.

    A token of several characters, or of several unknown words, belongs to its first one. The index
    of the end token is -1.
    """
    units, count = [], 0
    for number, token in enumerate(tokens):
        is_start = token.startswith(_WORD_START)
        if token == _END:
            units.append(-1)
        elif unit == "word":
            count += number == 0 and not is_start
            units.append(count if is_start else count - 1)
            count += token.count(_WORD_START)
        else:
            # The sign before the first word is not a character of the text.
            letters = token[1:] if number == 0 and is_start else token
            units.append(count if letters else -1)
            count += len(letters)
    return units, count


def _parse_links(gold: str) -> tuple[Links, Links]:
    """Return the sure links and all possible links as pairs of source and target."""
    sure, possible = set(), set()
    for text in gold.split():
        link = _LINK.fullmatch(text)
        if link is None:
            raise ValueError(f"invalid alignment link {text!r}; expected a form such as 0-0 or 2p3")
        pair = int(link[1]), int(link[3])
        possible.add(pair)
        if link[2] == "-":
            sure.add(pair)
    return sure, possible


def attention_in_box(rows: Rows, options: MetricOptions) -> Statistics:
    """Compute the share of a phrase's attention that lies inside the phrase's box, 0 to 1.

    Liu et al. 2017, "Attention Correctness in Neural Image Captioning", §4.1. The metric reads the
    model outputs the tokens and ``alignment`` ``[tokens, height, width]``, and the column
    ``boxes``: a JSON list of ``{"phrase": ..., "box": [left, top, right, bottom]}`` in shares of
    the image. A phrase counts once, at its first occurrence in the caption; phrases that do not
    occur do not count.

    Raises:
        ValueError: a column is missing.
    """
    import numpy as np

    phrase_count, named_count = 0, 0
    pairs = []
    for row in _box_shares(rows):
        shares_in_box = [share for share in row if share is not None]
        pairs.append([sum(shares_in_box), len(shares_in_box)])
        phrase_count += len(row)
        named_count += len(shares_in_box)
    signature = f"phrases:{phrase_count}|named:{named_count}"
    if not named_count:
        signature += "|undefined:no phrase of the boxes is in a caption"
    return Statistics(signature, np.array(pairs, "float64"), ratio)


def _box_shares(rows: Rows) -> list[list[float | None]]:
    """Return each row's share for each phrase; None for phrases that the caption lacks."""
    names = ("pieces", "alignment", "boxes")
    missing = [name for name in names if name not in rows.columns]
    if missing:
        raise ValueError(f"pointing needs the column {missing[0]!r}, which is missing")
    fractions = []
    for tokens, alignment, boxes in zip(*(rows.columns[name] for name in names), strict=True):
        row: list[float | None] = []
        for entry in json.loads(boxes) if boxes else []:
            grids = [alignment[i] for i in _find_phrase(tokens, entry["phrase"])]
            row.append(_share_inside(grids, entry["box"]) if grids else None)
        fractions.append(row)
    return fractions


def _find_phrase(tokens: Sequence[str], phrase: str) -> list[int]:
    """Return the tokens of the first occurrence of a phrase of whole words; empty without one."""
    units, count = _unit_of_tokens(tokens, "word")
    words = [""] * count
    for token, unit in zip(tokens, units, strict=True):
        if unit >= 0:
            words[unit] += token.replace(_WORD_START, "")
    sought = phrase.split()
    for i in range(count - len(sought) + 1):
        if words[i : i + len(sought)] == sought:
            return [token for token, unit in enumerate(units) if i <= unit < i + len(sought)]
    return []


def _share_inside(grids: Sequence[Any], box: Sequence[float]) -> float:
    """Return the share of the weight of all grids that lies inside a box."""
    import numpy as np

    weights = np.sum([np.asarray(grid, dtype="float64") for grid in grids], axis=0)
    height, width = weights.shape
    left, top, right, bottom = box
    across = _cell_coverage(left * width, right * width, width)
    down = _cell_coverage(top * height, bottom * height, height)
    total = float(weights.sum())
    return float(down @ weights @ across) / total if total > 0 else 0.0


def _cell_coverage(start: float, end: float, cells: int) -> np.ndarray:
    """Return the share of each cell of an axis between two edges."""
    import numpy as np

    edges = np.arange(cells)
    return np.clip(np.minimum(end, edges + 1) - np.maximum(start, edges), 0.0, 1.0)
