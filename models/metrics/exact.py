"""Exact match: for answers of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.metrics.base import Rows


def exact_match(rows: Rows, options: Mapping[str, Any]) -> tuple[float, str]:
    """The share of hypotheses that are one of their references, 0 to 1.

    Texts may differ in the space at their ends.
    """
    lowercase = bool(options.get("lowercase", False))
    is_text = rows.answers == "text"

    def normal(answer: Any) -> Any:
        if is_text:
            return answer.strip().lower() if lowercase else answer.strip()
        return answer if rows.answers == "number" else [int(position) for position in answer]

    pairs = zip(rows.hypotheses, rows.references, strict=True)
    same = sum(normal(got) in [normal(one) for one in wanted] for got, wanted in pairs)
    signature = f"nrefs:{rows.reference_count()}"
    if is_text:
        signature += f"|case:{'lc' if lowercase else 'mixed'}|norm:strip"
    return same / len(rows.hypotheses), signature
