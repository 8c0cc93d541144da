"""Where a model looks on the whole: how sharply, and whether at everything.

The entropy of the weights of one step is told as a share of that of even attention, as on the page
that serves a model; coverage is the sum of the weights that a piece of the input gets while the
whole answer is written (Tu et al. 2016, "Modeling Coverage for Neural Machine Translation", §3).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from components import predictions
from components.reporter.facts import Facts

if TYPE_CHECKING:
    import numpy as np

MOST_ROWS = 500
# A piece that was hardly looked at may have been left out, one looked at often said twice.
LITTLE, MUCH = 0.2, 2.0


@dataclasses.dataclass(frozen=True)
class Attention:
    """What the looks of many rows have in common.

    Attributes:
        rows: how many were looked at.
        entropy: of each step of each row, 0 (one place) to 1 (all alike).
        coverage: of each piece of each input; None of images, whose cells nobody has to look at.
        pieces: what the input's parts are called: ``pieces`` or ``points``.
    """

    rows: int
    entropy: np.ndarray
    coverage: np.ndarray | None
    pieces: str


def measure(facts: Facts) -> Attention | None:
    """The looks of up to `MOST_ROWS` rows, spread over the split; None where there are none."""
    import numpy as np

    path, looks = facts.table, (facts.predicted.get("contract") or {}).get("looks")
    if path is None or not looks or looks["weights"] not in predictions.column_names(path):
        return None
    count = predictions.row_count(path)
    places = np.unique(np.linspace(0, count - 1, min(count, MOST_ROWS)).astype(int)).tolist()
    entropies, coverages = [], []
    for row in predictions.rows_at(path, places, [looks["weights"]]):
        array = np.asarray(row[looks["weights"]], "float64")
        if array.size == 0 or not np.isfinite(array).all():
            continue
        flat = array.reshape(len(array), -1)
        entropies.append(entropy(flat))
        coverages.append(flat.sum(axis=0))
    if not entropies:
        return None
    kinds = {entry["name"]: entry["kind"] for entry in facts.predicted["contract"]["inputs"]}
    kind = kinds.get(looks["columns"], "pieces")
    coverage = None if kind == "image" else np.concatenate(coverages)
    called = "points" if kind == "points" else "pieces"
    return Attention(len(entropies), np.concatenate(entropies), coverage, called)


def entropy(weights: np.ndarray) -> np.ndarray:
    """The entropy of each row of ``[steps, places]``, as a share of even attention's."""
    import numpy as np

    total = weights.sum(axis=1, keepdims=True)
    shares = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    logarithms = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    most = np.log(max(weights.shape[1], 2))
    return -(shares * logarithms).sum(axis=1) / most


def summary(found: Attention) -> list[tuple[str, str]]:
    """What stands beside the pictures: names and texts."""
    from components.reporter.words import share

    told = [
        ("rows looked at", f"{found.rows:,}"),
        ("mean entropy of a step, of even attention's", share(float(found.entropy.mean()))),
    ]
    if found.coverage is not None:
        little, much = (found.coverage < LITTLE).mean(), (found.coverage > MUCH).mean()
        told += [
            (f"{found.pieces} looked at less than {LITTLE:g} times in all", share(float(little))),
            (f"{found.pieces} looked at more than {MUCH:g} times in all", share(float(much))),
        ]
    return told
