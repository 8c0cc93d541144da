"""Texts and bars in the tables of a report, as filters and functions of its template."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from regard.core import formatting
from regard.serving.contract import answer_kind

Json = Mapping[str, Any]


def format_share(value: float) -> str:
    """Format a share as a percentage with two significant digits."""
    if value in (0, 1):
        return f"{100 * value:.0f}%"
    if value > 0.99:
        return "over 99.9%" if value > 0.999 else f"{100 * value:.1f}%"
    return "under 0.01%" if value < 0.0001 else f"{100 * value:.2g}%"


def format_difference(metric: Json, old: float | None) -> str:
    """Format the difference from production, and whether it is an improvement."""
    new = metric["value"]
    if new is None or old is None or not math.isfinite(new) or not math.isfinite(old):
        return ""
    change = new - old
    if not change:
        return "none"
    judgement = "better" if (change > 0) == metric["higher_is_better"] else "worse"
    return f"{change:+.{formatting.metric_digits(metric['scale'])}f}, {judgement}"


def format_signed(value: float, scale: float) -> str:
    """Format a difference of a metric with its sign."""
    return f"{value:+.{formatting.metric_digits(scale)}f}"


def format_p_value(comparison: Json) -> str:
    """Format the p-value of the comparison with production and its test; empty without a test."""
    value = comparison["p_value"]
    if value is None:
        return ""
    text = "under 0.001" if value < 0.001 else f"{value:.3f}"
    return f"{text} ({comparison['test']})"


def bar_length(value: float | None, metric: Json) -> float:
    """Return the length of a bar in percent; 0 for a metric without an upper bound."""
    if value is None or not math.isfinite(value) or not metric["higher_is_better"]:
        return 0.0
    return round(min(max(100 * value / metric["scale"], 0.0), 100.0), 1)


def group_by_kind(slices: Sequence[Json]) -> dict[str, list[Json]]:
    """Group the scores of slices by kind, in their order."""
    groups: dict[str, list[Json]] = {}
    for entry in slices:
        groups.setdefault(entry["kind"], []).append(entry)
    return groups


def sort_checks(checks: Json) -> Json:
    """Sort the checks of the data: exceeded limits first, then those with rows."""
    return dict(
        sorted(checks.items(), key=lambda item: (not item[1]["exceeded"], not item[1]["count"]))
    )


FILTERS: dict[str, Callable[..., Any]] = {
    "answer_kind": answer_kind,
    "bar_length": bar_length,
    "by_kind": group_by_kind,
    "bytes": formatting.format_bytes,
    "count": formatting.format_count,
    "difference": format_difference,
    "duration": formatting.format_duration,
    "exceeded_first": sort_checks,
    "interval": formatting.format_interval,
    "metric": formatting.format_metric,
    "p_value": format_p_value,
    "rows": formatting.format_rows,
    "score_with_loss": formatting.score_with_loss,
    "share": format_share,
    "signed": format_signed,
    "thousands": "{:,}".format,
    "time": formatting.format_time,
}
