"""Exact match: for answers of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.metrics.base import Rows, Statistics, mean_of


def exact_match(rows: Rows, options: Mapping[str, Any]) -> Statistics:
    """The share of hypotheses that are one of their references, 0 to 1.

    Texts may differ in the space at their ends.
    """
    signature = f"nrefs:{rows.reference_count()}"
    if rows.answers == "text":
        signature += f"|case:{'lc' if _lowercase(options) else 'mixed'}|norm:strip"
    return mean_of(_same(rows, options), signature)


def _same(rows: Rows, options: Mapping[str, Any]) -> list[bool]:
    lowercase, is_text = _lowercase(options), rows.answers == "text"

    def normal(answer: Any) -> Any:
        if is_text:
            return answer.strip().lower() if lowercase else answer.strip()
        return answer if rows.answers == "number" else [int(position) for position in answer]

    pairs = zip(rows.hypotheses, rows.references, strict=True)
    return [normal(got) in [normal(one) for one in wanted] for got, wanted in pairs]


def _lowercase(options: Mapping[str, Any]) -> bool:
    return bool(options.get("lowercase", False))
