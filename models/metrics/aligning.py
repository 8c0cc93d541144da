"""Whether a model looks where people know that a word comes from.

Och and Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models", §4.1: the
alignment error rate of links A beside sure links S and possible links P ⊇ S is
1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from models.metrics.base import Rows, Statistics

if TYPE_CHECKING:
    import numpy as np

# SentencePiece's sign for the space before a word.
_MARK = "\u2581"
_END = "</s>"
_LINK = re.compile(r"(\d+)([-p])(\d+)")
# What the model showed for the reference: see the Predictor.
ALIGNMENT, SOURCE, TARGET = "forced_alignment", "forced_source_pieces", "forced_target_pieces"
UNITS = ("word", "character")


def aer(rows: Rows, options: Mapping[str, Any]) -> Statistics:
    """The alignment error rate, 0 to 1; lower is better: of each row |A ∩ S|, |A ∩ P|, |A|, |S|.

    Each word of the target (or character, by the unit) has one link: to the word of the source that
    has most of its weight, summed over the pieces of that word and averaged over its own. The end
    of sentence is no word. Links of what has no link in the gold alignment do not count, for a
    model cannot look nowhere. It reads the columns ``forced_alignment`` ``[target, source]``,
    ``forced_source_pieces`` and ``forced_target_pieces``, and the gold links in Pharaoh's form,
    ``0-0 1-2 2p3``: source, then target, from 0; ``p`` makes a link a possible one.

    Args:
        rows: with the columns.
        options: ``alignment``, with the column of the ``gold`` links, the ``unit``, and of a
            Transformer the ``layer`` and the ``head`` that the weights are of.

    Raises:
        ValueError: there is no gold, or a link cannot be read.
    """
    import numpy as np

    found = _counts(rows, options)
    counts = np.array([count or (0, 0, 0, 0) for count in found], "float64").reshape(-1, 4)
    used = sum(count is not None for count in found)
    signature = f"{_asked(options['alignment'])}|rows:{used} of {len(found)}"
    if not counts[:, 2:].any():
        signature += "|undefined:no links"
    return Statistics(counts, lambda total: _rate(total.tolist()), signature)


def _asked(alignment: Mapping[str, Any]) -> str:
    """What the rate depends on, as the beginning of a signature."""
    told = {name: alignment.get(name) for name in ("unit", "layer", "head")}
    return "|".join(f"{name}:{value}" for name, value in told.items() if value is not None)


def _rate(totals: Sequence[float]) -> float:
    sure, possible, links, gold = totals
    return 1.0 - (sure + possible) / (links + gold) if links + gold else math.nan


def _counts(rows: Rows, options: Mapping[str, Any]) -> list[tuple[int, int, int, int] | None]:
    """Of each row the four counts; None where its pieces are not those of the texts."""
    if not options.get("alignment"):
        raise ValueError("aer needs evaluation.alignment, which says where the gold links are")
    gold, unit = options["alignment"]["gold"], options["alignment"]["unit"]
    if any(name not in rows.columns for name in (ALIGNMENT, SOURCE, TARGET)):
        return [None] * len(rows.hypotheses)
    columns = (rows.columns[name] for name in (ALIGNMENT, SOURCE, TARGET, gold))
    return [
        _count(weights, source, target, links, unit)
        for weights, source, target, links in zip(*columns, strict=True)
    ]


def _count(
    weights: Any, source: Sequence[str] | None, target: Sequence[str] | None, gold: str, unit: str
) -> tuple[int, int, int, int] | None:
    import numpy as np

    if not gold or source is None or target is None:
        return None
    sure, possible = _links(gold)
    places = _units(source, unit), _units(target, unit)
    sizes = [max(place, default=-1) + 1 for place in places]
    if any(s >= sizes[0] or t >= sizes[1] for s, t in possible):
        return None  # normalisation has made another text of it, or it was cut
    wanted = {t for _, t in possible}
    grid = _by_unit(np.asarray(weights, "float64"), *places, sizes)
    found = {(int(grid[t].argmax()), t) for t in wanted if grid[t].max() > 0}
    return len(found & sure), len(found & possible), len(found), len(sure)


def _by_unit(
    weights: np.ndarray, source: list[int], target: list[int], sizes: Sequence[int]
) -> np.ndarray:
    """Weights of pieces ``[target, source]`` as weights of units; pieces of none are left out."""
    import numpy as np

    into = [
        np.zeros((size, len(place))) for size, place in zip(sizes, (source, target), strict=True)
    ]
    for matrix, place in zip(into, (source, target), strict=True):
        for piece, at in enumerate(place):
            if at >= 0:
                matrix[at, piece] = 1.0
    means = into[1] / np.maximum(into[1].sum(axis=1, keepdims=True), 1.0)
    return means @ weights[: len(target), : len(source)] @ into[0].T


def _units(pieces: Sequence[str], unit: str) -> list[int]:
    """Which word, or which character, each piece is of; -1: none, as the end of sentence.

    A piece of several characters is of its first one.
    """
    found, at = [], -1 if unit == "word" else 0
    for number, piece in enumerate(pieces):
        if piece == _END:
            found.append(-1)
        elif unit == "word":
            at += piece.startswith(_MARK) or number == 0
            found.append(at)
        else:
            # The mark before the first word stands for no character of the text.
            letters = piece[1:] if number == 0 and piece.startswith(_MARK) else piece
            found.append(at if letters else -1)
            at += len(letters)
    return found


def _links(gold: str) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """The sure links and all possible ones, each a source and a target."""
    sure, possible = set(), set()
    for text in gold.split():
        link = _LINK.fullmatch(text)
        if link is None:
            raise ValueError(f"{text!r} is no link such as 0-0 or 2p3")
        pair = int(link[1]), int(link[3])
        possible.add(pair)
        if link[2] == "-":
            sure.add(pair)
    return sure, possible
