"""Statistics of attention over many rows: entropy and coverage.

The entropy of a decoding step is normalized: 1 is uniform attention. Coverage is the sum of the
weights that an input token gets over all steps (Tu et al. 2016, "Modeling Coverage for Neural
Machine Translation", section 3).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from regard.components.common import prediction_table
from regard.components.reporter.run_facts import RunFacts
from regard.core.formatting import format_count
from regard.core.kinds import TEXT
from regard.serving.contract import input_kinds

if TYPE_CHECKING:
    import numpy as np

MAX_ROWS = 500


@dataclasses.dataclass(frozen=True)
class AttentionStatistics:
    """The attention of a sample of rows.

    Attributes:
        rows: the size of the sample.
        entropy: ``[steps]`` of all rows, from 0 (one position) to 1 (uniform).
        coverage: ``[tokens]`` of all inputs; None for images, whose cells need no coverage.
        unit: ``tokens`` or ``points``.
        row_count: the number of rows of weights with what they belong to, such as ``40 decoding
            steps`` or ``12 tokens of first``.
    """

    rows: int
    entropy: np.ndarray
    coverage: np.ndarray | None
    unit: str
    row_count: str


def measure_attention(facts: RunFacts) -> AttentionStatistics | None:
    """Compute the statistics of up to `MAX_ROWS` rows of the split; None without attention."""
    import numpy as np

    path, attention_entry = facts.table, facts.contract.get("looks")
    if (
        path is None
        or not attention_entry
        or attention_entry["weights"] not in prediction_table.column_names(path)
    ):
        return None
    count = prediction_table.row_count(path)
    sample = np.unique(np.linspace(0, count - 1, min(count, MAX_ROWS)).astype(int)).tolist()
    entropies, coverages = [], []
    for row in prediction_table.rows_at(path, sample, [attention_entry["weights"]]):
        weights = np.asarray(row[attention_entry["weights"]], "float64")
        if weights.size == 0 or not np.isfinite(weights).all():
            continue
        flat = weights.reshape(len(weights), -1)
        entropies.append(normalized_entropy(flat))
        coverages.append(flat.sum(axis=0))
    if not entropies:
        return None
    kind = input_kinds(facts.contract).get(attention_entry["columns"], TEXT)
    coverage = None if kind.names_file else np.concatenate(coverages)
    unit = kind.name if kind.has_length else "tokens"
    entropy = np.concatenate(entropies)
    row_count = _count_rows(len(entropy), facts.contract, attention_entry["rows"])
    return AttentionStatistics(len(entropies), entropy, coverage, unit, row_count)


def _count_rows(count: int, contract: Mapping[str, Any], labels: str) -> str:
    """Return a number of rows of weights with what their labels name."""
    for name in input_kinds(contract):
        if labels == f"{name}_pieces":
            return f"{format_count(count, 'token')} of {name}"
    return format_count(count, "step" if labels == "steps" else "decoding step")


def normalized_entropy(weights: np.ndarray) -> np.ndarray:
    """The entropy of each row of ``[steps, positions]``, divided by that of uniform weights."""
    import numpy as np

    total = weights.sum(axis=1, keepdims=True)
    fractions = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    logarithms = np.log(fractions, out=np.zeros_like(fractions), where=fractions > 0)
    uniform = np.log(max(weights.shape[1], 2))
    return -(fractions * logarithms).sum(axis=1) / uniform
