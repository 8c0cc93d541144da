"""Numbers and times in sentences for the user."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

# Tabs (9) and line feeds (10) are not among them.
_CONTROL_CODES = [*range(9), *range(11, 32), *range(127, 160)]
_ESCAPES = {code: f"\\x{code:02x}" for code in _CONTROL_CODES}
# Python has them for bytes that are not UTF-8, as in file names. No output can encode them.
_ESCAPES |= {code: f"\\u{code:04x}" for code in range(0xD800, 0xE000)}
_CONTEXT = 20  # characters before a difference


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 line``, ``2,000 lines``."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def join_words(words: Sequence[str]) -> str:
    """Return words as ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def truncate(text: str, limit: int = 60) -> str:
    """Return a text with at most ``limit`` characters, the last of them ``…`` if it is cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def changed_part(text: str, other: str) -> str:
    """Return the part of a text that starts shortly before its first difference from another."""
    pairs = zip(text, other, strict=False)
    differences = (position for position, (a, b) in enumerate(pairs) if a != b)
    start = next(differences, 0) - _CONTEXT
    if start <= 0:
        return truncate(text)
    return f"…{truncate(text[start:])}"


def printable(text: str) -> str:
    """Return a text for a terminal: with ``\\x1b`` for an escape, and so on for control characters.

    A file name, a data set or a message from elsewhere could otherwise move the cursor, change the
    clipboard or hide output, and one that is not UTF-8 could not be written. Tabs and line feeds
    remain.
    """
    return text.translate(_ESCAPES)


def format_bytes(count: int) -> str:
    """Return bytes in a suitable unit: ``512 B``, ``3.4 KiB``, ``1.6 GiB``."""
    number, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if number < 1024:
            break
        number, unit = number / 1024, larger
    return f"{count} B" if unit == "B" else f"{number:.1f} {unit}"


def format_rows(counts: Mapping[str, Any]) -> str:
    """Return the rows of each split, ``900 train, 50 test``, or the replayed rows of a span.

    Args:
        counts: ``rows`` by split; if it is ``replayed``, how many were ``available``.
    """
    rows = counts.get("rows", {})
    if counts.get("replayed") and "available" in counts:
        return f"{rows['train']:,} of {format_count(counts['available'], 'row')} replayed"
    return ", ".join(f"{count:,} {split}" for split, count in rows.items() if count)


def format_spans(spans: Sequence[Mapping[str, Any]]) -> str:
    """Return a short list of spans: ``11 to 12 (2), replaying 1 to 10 (10)``.

    Args:
        spans: the ``name`` of each span, and whether it is ``replayed``.
    """
    replayed = [span["name"] for span in spans if span.get("replayed")]
    text = _format_range([span["name"] for span in spans if not span.get("replayed")])
    return f"{text}, replaying {_format_range(replayed)}" if replayed else text


def _format_range(names: Sequence[str]) -> str:
    return "".join(names) if len(names) < 2 else f"{names[0]} to {names[-1]} ({len(names)})"


def format_metric(value: float | None, scale: float = 100.0) -> str:
    """Return the value of a metric with digits that suit its scale: ``33.13``, ``0.9940``."""
    if value is None or not math.isfinite(value):
        return "undefined"
    return f"{value:.{metric_digits(scale)}f}"


def format_score(score: Mapping[str, Any]) -> str:
    """Return the label and the value of a metric: ``BLEU 33.13``."""
    label, scale = score.get("label", score["name"]), score.get("scale", 100.0)
    return f"{label} {format_metric(score['value'], scale)}"


def value_with_interval(score: Mapping[str, Any], scale: float) -> str:
    """Format the value of a metric, with its confidence interval if that is known."""
    return f"{format_metric(score['value'], scale)} {format_interval(score, scale)}".rstrip()


def format_interval(score: Mapping[str, Any], scale: float) -> str:
    """Format the confidence interval of a metric, ``[32.10, 34.16]``; empty if it has none."""
    interval = score.get("interval")
    if not interval:
        return ""
    return f"[{', '.join(format_metric(interval[end], scale) for end in ('low', 'high'))}]"


def score_with_loss(entry: Mapping[str, Any], name: str, scale: float) -> str:
    """Format the score of changed inputs with its loss: ``25.10 (8.03)``."""
    score, loss = (format_metric(entry[key][name], scale) for key in ("scores", "losses"))
    return f"{score} ({loss})"


def metric_digits(scale: float) -> int:
    """Return the decimals of a metric whose best value is ``scale``."""
    return 2 if scale >= 10 else 4


def format_time(seconds: float) -> str:
    """Format seconds since 1970 as a UTC time, to the minute: ``2026-11-26 02:12``."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M")


def format_duration(seconds: float | None) -> str:
    """Return seconds briefly: ``0.4 s``, ``12 s``, ``3:05``, ``1:02:03``; empty for None."""
    if seconds is None:
        return ""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def format_wait(seconds: float) -> str:
    """Return a time to come roughly: ``5 days``, ``3 hours``, ``12 minutes``, ``40 seconds``."""
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size:
            return format_count(round(seconds / size), unit)
    return format_count(round(seconds), "second")


def format_created(text: str) -> str:
    """Format the creation time of a version, ISO 8601, as a UTC time; empty if it is not known."""
    try:
        created = datetime.fromisoformat(text)
    except ValueError:
        return ""
    return format_time(created.timestamp())
