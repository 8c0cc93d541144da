"""Corpus metrics: each gives one number with a signature that states its settings.

A metric is one entry of `METRICS`, in which other packages register theirs.
"""

from collections.abc import Sequence
from typing import Any

from regard.core.features import Kind
from regard.core.kinds import NUMBER, POSITIONS
from regard.core.plugins import PluginTable
from regard.core.suggestions import suggest
from regard.models.metrics import geometry, overlap, reading, regression
from regard.models.metrics.attention import alignment_error_rate, attention_in_box
from regard.models.metrics.base import (
    ANY_KIND,
    DEFAULT_OPTIONS,
    GoldAlignment,
    Metric,
    MetricOptions,
    MetricSpec,
    Rows,
)
from regard.models.metrics.overlap import missing_tokenizer_package, tokenizers
from regard.models.metrics.perplexity import perplexity
from regard.models.metrics.scorer import Scorer

__all__ = [
    "METRICS",
    "GoldAlignment",
    "Metric",
    "MetricOptions",
    "MetricSpec",
    "Rows",
    "Scorer",
    "compute",
    "get_metric",
    "metrics_for",
    "missing_tokenizer_package",
    "needs_attention",
    "scorers",
    "tokenizers",
]

_SHARE: dict[str, Any] = {"high": 1.0, "scale": 1.0}
_NUMBER: dict[str, Any] = {"output_kind": NUMBER.name, "scale": 1.0}
_CORRELATION: dict[str, Any] = {**_NUMBER, "low": -1.0, "high": 1.0}
_POINTS: dict[str, Any] = {"output_kind": POSITIONS.name, "needs_columns": True, **_SHARE}
_ATTENTION: dict[str, Any] = {"needs_attention": True, "needs_columns": True, **_SHARE}
_LOWER_IS_BETTER: dict[str, Any] = {"higher_is_better": False, "high": None}
_TOUR: dict[str, Any] = {**_POINTS, **_LOWER_IS_BETTER}
_PERPLEXITY: dict[str, Any] = {"low": 1.0, "scale": 1.0, "needs_columns": True}

_OWN: dict[str, MetricSpec] = {
    "bleu": MetricSpec("BLEU", overlap.bleu),
    "chrf": MetricSpec("chrF", overlap.chrf),
    "exact_match": MetricSpec("exact match", overlap.exact_match, output_kind=ANY_KIND, **_SHARE),
    "bleu_lc": MetricSpec("BLEU (lc)", overlap.bleu_lc),
    **{f"bleu_{n}": MetricSpec(f"BLEU-{n}", overlap.bleu_up_to(n)) for n in range(1, 5)},
    "ter": MetricSpec("TER", overlap.ter, **_LOWER_IS_BETTER),
    **{f"rouge_{n}": MetricSpec(f"ROUGE-{n.upper()}", overlap.rouge(n)) for n in "12l"},
    "perplexity": MetricSpec("perplexity", perplexity, **_PERPLEXITY, **_LOWER_IS_BETTER),
    "pearson": MetricSpec("Pearson", regression.pearson, **_CORRELATION),
    "spearman": MetricSpec("Spearman", regression.spearman, **_CORRELATION),
    "mse": MetricSpec("MSE", regression.mse, **_NUMBER, **_LOWER_IS_BETTER),
    "pointing": MetricSpec("pointing", attention_in_box, **_ATTENTION),
    "aer": MetricSpec("AER", alignment_error_rate, higher_is_better=False, **_ATTENTION),
    "hull_accuracy": MetricSpec("hull accuracy", geometry.hull_accuracy, **_POINTS),
    "hull_area": MetricSpec("hull area", geometry.hull_area, **_POINTS),
    "tour_length": MetricSpec("tour length", geometry.tour_length, **_TOUR),
    "tour_ratio": MetricSpec("tour ratio", geometry.tour_ratio, **_TOUR),
    "squad_exact_match": MetricSpec("SQuAD exact match", reading.squad_exact_match, **_SHARE),
    "squad_f1": MetricSpec("SQuAD F1", reading.squad_f1, **_SHARE),
    "supporting_attention": MetricSpec(
        "attention on supporting sentences", reading.supporting_attention, **_ATTENTION
    ),
    "valid_tours": MetricSpec("valid tours", geometry.valid_tours, **_POINTS),
}
METRICS: PluginTable[MetricSpec] = PluginTable("regard.metrics", _OWN, MetricSpec)


def compute(
    names: Sequence[str], rows: Rows, options: MetricOptions = DEFAULT_OPTIONS
) -> list[Metric]:
    """Compute metrics of one corpus, in the order of ``names``.

    Raises:
        ValueError: as `scorers`; or the tokenizer is unknown or lacks its package.
    """
    return [scorer.metric(name) for name, scorer in scorers(names, rows, options).items()]


def scorers(
    names: Sequence[str],
    rows: Rows,
    options: MetricOptions = DEFAULT_OPTIONS,
    specs: PluginTable[MetricSpec] = METRICS,
) -> dict[str, Scorer]:
    """Return a scorer of one corpus for each metric, in the order of ``names``.

    Args:
        names: keys of ``specs``.
        rows: the outputs and the references.
        options: settings of the metrics.
        specs: all metrics.

    Raises:
        ValueError: a metric is unknown or does not score such outputs (the message lists the
            choices); or the rows are empty, of unequal number, or without a reference.
    """
    if len(rows.hypotheses) != len(rows.references):
        raise ValueError(f"{len(rows.hypotheses)} hypotheses but {len(rows.references)} references")
    if not rows.hypotheses:
        raise ValueError("there are no hypotheses to score")
    for row, references in enumerate(rows.references):
        if not references:
            raise ValueError(f"row {row} has no reference")
    kind = rows.output_kind
    return {name: Scorer(get_metric(name, kind, specs), rows, options) for name in names}


def get_metric(name: str, kind: Kind, specs: PluginTable[MetricSpec] = METRICS) -> MetricSpec:
    """Return the metric called ``name``.

    Args:
        name: a key of ``specs``.
        kind: the kind of the outputs.
        specs: all metrics.

    Raises:
        ValueError: the metric is unknown or scores other outputs; the message lists the choices.
    """
    if supports(name, kind, specs):
        return specs[name]
    choices = metrics_for(kind, specs)
    if name not in specs:
        raise ValueError(f"Unknown metric {name!r}. {suggest(name, choices)}.")
    raise ValueError(
        f"{name} scores outputs of kind {specs[name].output_kind}, but the model's outputs are of"
        f" kind {kind} (choices: {', '.join(choices)})"
    )


def supports(name: str, kind: Kind, specs: PluginTable[MetricSpec] = METRICS) -> bool:
    """Return whether a metric exists and scores outputs of a kind."""
    return name in specs and specs[name].supports(kind)


def metrics_for(kind: Kind, specs: PluginTable[MetricSpec] = METRICS) -> list[str]:
    """Return the metrics that score outputs of a kind."""
    return [name for name, spec in specs.items() if spec.supports(kind)]


def suits_changed_inputs(name: str) -> bool:
    """Return whether a metric is computed for changed inputs: without attention and commands."""
    return name in METRICS and not METRICS[name].needs_attention


def needs_attention(name: str) -> bool:
    """Return whether a metric exists and reads attention weights."""
    return name in METRICS and METRICS[name].needs_attention
