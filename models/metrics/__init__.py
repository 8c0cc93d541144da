"""How good hypotheses are beside their references: one number a metric, with its signature.

A metric is one function in `METRICS`; a task that needs its own adds a line there.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from models.metrics import numbers, overlap, points
from models.metrics.aligning import aer
from models.metrics.base import Kind, Metric, Rows
from models.metrics.exact import exact_match
from models.metrics.likelihood import perplexity
from models.metrics.overlap import tokenizers, unusable
from models.metrics.pointing import pointing, pointing_summed
from models.metrics.rouge import rouge
from models.metrics.scorer import Scorer

__all__ = [
    "METRICS",
    "Kind",
    "Metric",
    "Rows",
    "Scorer",
    "compute",
    "find",
    "judging",
    "looks",
    "scorers",
    "tokenizers",
    "unusable",
]

_NUMBER: dict[str, Any] = {"answers": "number", "scale": 1.0}
_POINTS: dict[str, Any] = {"answers": "positions", "scale": 1.0}
_LOOKS: dict[str, Any] = {"looks": True, "beside": True}
_LOW: dict[str, Any] = {"higher_is_better": False, "high": None}  # the lower, the better


def _of_points(name: str, label: str, **more: Any) -> Kind:
    more = {"high": 1.0, "beside": True, **_POINTS, **more}
    return Kind(label, getattr(points, name), points.SUMMED[name], **more)


METRICS: Mapping[str, Kind] = MappingProxyType(
    {
        "bleu": Kind.of_sums("BLEU", overlap.bleu),
        "chrf": Kind.of_sums("chrF", overlap.chrf),
        "exact_match": Kind.of_sums("exact match", exact_match, answers="any", high=1.0, scale=1.0),
        "bleu_lc": Kind.of_sums("BLEU (lc)", overlap.bleu_lc),
        **{
            f"bleu_{order}": Kind.of_sums(f"BLEU-{order}", overlap.bleu_up_to(order))
            for order in range(1, 5)
        },
        "ter": Kind.of_sums("TER", overlap.ter, **_LOW),
        **{
            f"rouge_{short}": Kind.of_sums(label, rouge(kind))
            for short, label, kind in (
                ("1", "ROUGE-1", "rouge1"),
                ("2", "ROUGE-2", "rouge2"),
                ("l", "ROUGE-L", "rougeL"),
            )
        },
        "perplexity": Kind.of_sums(
            "perplexity", perplexity, low=1.0, scale=1.0, beside=True, **_LOW
        ),
        "pearson": Kind(
            "Pearson", numbers.pearson, numbers.pearson_summed, low=-1.0, high=1.0, **_NUMBER
        ),
        "spearman": Kind("Spearman", numbers.spearman, low=-1.0, high=1.0, **_NUMBER),
        "mse": Kind("MSE", numbers.mse, numbers.mse_summed, **_NUMBER, **_LOW),
        "pointing": Kind("pointing", pointing, pointing_summed, high=1.0, scale=1.0, **_LOOKS),
        "aer": Kind.of_sums("AER", aer, high=1.0, scale=1.0, higher_is_better=False, **_LOOKS),
        "hull_accuracy": _of_points("hull_accuracy", "hull accuracy"),
        "hull_area": _of_points("hull_area", "hull area"),
        "tour_length": _of_points("tour_length", "tour length", **_LOW),
        "tour_ratio": _of_points("tour_ratio", "tour ratio", **_LOW),
        "valid_tours": _of_points("valid_tours", "valid tours"),
    }
)


def compute(
    names: Sequence[str], rows: Rows, options: Mapping[str, Any] = MappingProxyType({})
) -> list[Metric]:
    """Computes metrics of one corpus, in the order of ``names``; see `scorers`.

    Raises:
        ValueError: as `scorers` does; for an unknown tokenizer, and for one whose package is
            missing.
    """
    return [scorer.metric(name) for name, scorer in scorers(names, rows, options).items()]


def scorers(
    names: Sequence[str], rows: Rows, options: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Scorer]:
    """What can tell metrics of one corpus and of parts of it, in the order of ``names``.

    Args:
        names: keys of `METRICS`.
        rows: what the model answered and what it should have.
        options: ``tokenize``, sacreBLEU's tokenizer for BLEU, such as ``13a`` (the default),
            ``zh`` or ``char``; ``lowercase``, whether capitals are taken for small letters.

    Raises:
        ValueError: for an unknown metric, or one that cannot judge such answers (the message has
            the choices), and for rows that are empty, uneven or without a reference.
    """
    if len(rows.hypotheses) != len(rows.references):
        raise ValueError(f"{len(rows.hypotheses)} hypotheses but {len(rows.references)} references")
    if not rows.hypotheses:
        raise ValueError("there are no hypotheses to score")
    for row, references in enumerate(rows.references):
        if not references:
            raise ValueError(f"row {row} has no reference")
    return {name: Scorer(find(name, rows.answers), rows, options) for name in names}


def find(name: str, answers: str | None = None) -> Kind:
    """The kind of metric called ``name``.

    Args:
        name: a key of `METRICS`.
        answers: what it has to judge: ``text``, ``number`` or ``positions``; None: anything.

    Raises:
        ValueError: there is none, or it judges other answers; the message has the choices.
    """
    choices = list(METRICS) if answers is None else judging(answers)
    if name not in METRICS:
        close = difflib.get_close_matches(name, choices, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"unknown metric {name!r}{hint} (choices: {', '.join(choices)})")
    kind = METRICS[name]
    if answers is not None and not kind.judges(answers):
        raise ValueError(
            f"{name} judges answers of the kind {kind.answers}, and the model's are of the kind"
            f" {answers} (choices: {', '.join(choices)})"
        )
    return kind


def judging(answers: str) -> list[str]:
    """The metrics that can judge answers of a kind: ``text``, ``number`` or ``positions``."""
    return [name for name, kind in METRICS.items() if kind.judges(answers)]


def looks(name: str) -> bool:
    """Whether a metric reads where a model looked; one that there is not does not."""
    return name in METRICS and METRICS[name].looks
