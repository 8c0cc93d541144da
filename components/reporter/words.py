"""How the report says things: numbers, shares, times, and one sentence about the whole run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from components.reporter.facts import Facts
from components.words import counted


def number(value: float | None, scale: float = 100.0) -> str:
    """A metric's value with the digits that people write."""
    if value is None or not math.isfinite(value):
        return "undefined"
    return f"{value:.{2 if scale >= 10 else 4}f}"


def share(value: float) -> str:
    """A share as percents: none, all, or with two digits that count."""
    if value in (0, 1):
        return f"{100 * value:.0f}%"
    return f"{100 * value:.2g}%" if value < 0.995 else f"{100 * value:.2f}%"


def duration(seconds: float | None) -> str:
    """A time for people: ``0.4 s``, ``12 s``, ``3 min 05 s``, ``2 h 10 min``."""
    if seconds is None:
        return ""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def size(count: int | None) -> str:
    """A number of bytes: ``812 MB``, ``2.1 GB``."""
    if count is None:
        return ""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def model_name(task: str, config: Mapping[str, Any]) -> str:
    """The model in a few words, such as ``Luong translation model with general attention``."""
    model = config.get("model", {})
    encoder, decoder = (model.get(part) or {} for part in ("encoder", "decoder"))
    kind = decoder.get("type") or (encoder.get("type", "") if not decoder else "")
    name = f"{kind} {task} model".strip()
    if "attention" in model and model["attention"] is None:
        return f"{name} without attention"
    score = _type((model.get("attention") or {}).get("score")) or _type(decoder.get("score"))
    alignment = _type((model.get("attention") or {}).get("alignment"))
    parts = [part for part in (alignment if alignment != "soft" else "", score) if part]
    if not parts or kind == "transformer":
        return name
    return f"{name} with {' '.join(parts).replace('_', ' ')} attention"


def headline(facts: Facts) -> str:
    """What was trained, on what, how good it is, and what became of it, in one sentence."""
    about, training = facts.about, facts.training
    text = model_name(about.task, about.config)
    text = f"A{'n' if text[0] in 'aeiou' else ''} {_capital(text)}"
    if training:
        text += f" ({training['parameters']:,} parameters)"
    rows = facts.corpus.get("rows", {}).get("train")
    if training and rows:
        text += f", trained on {rows:,} rows of {about.name} in {_effort(training)},"
    metrics = list(facts.metrics.get("metrics", {}).values())
    if metrics:
        first = metrics[0]
        text += f" reaches {told_metric(first)} on {facts.metrics['rows']:,} rows it never saw"
    else:
        text = text.rstrip(",")
    return f"{text}{'; it' if metrics else ''} {_fate(facts, bool(metrics))}."


def told_metric(metric: Mapping[str, Any]) -> str:
    """A metric with its interval: ``BLEU 35.61 (34.50 to 36.70)``."""
    text = f"{metric['label']} {number(metric['value'], metric['scale'])}"
    sure = metric.get("interval")
    if not sure:
        return text
    low, high = (number(sure[end], metric["scale"]) for end in ("low", "high"))
    return f"{text} ({low} to {high})"


def _fate(facts: Facts, told: bool) -> str:
    if facts.pushed.get("pushed"):
        return f"was blessed and pushed as version {facts.pushed['version']}"
    if facts.blessing.get("blessed"):
        return "was blessed" if not facts.pushed else "was blessed, and not pushed"
    if facts.blessing:
        return "was not blessed"
    subject = "" if told else "has not been judged"
    if facts.about.failure:
        where = facts.about.failure.get("node")
        return f"{subject}: the run failed{f' at {where}' if where else ''}".lstrip(": ")
    return subject or "has not been judged"


def _effort(training: Mapping[str, Any]) -> str:
    steps = counted(training["steps"], "step")
    epochs = f"{counted(training['epochs'], 'epoch')} ({steps})" if training["epochs"] else steps
    return f"{epochs} and {duration(training['seconds'])}"


def _type(section: Any) -> str:
    """The name of a part that is given by its name or as a section."""
    if isinstance(section, Mapping):
        return str(section.get("type") or "")
    return section if isinstance(section, str) else ""


def _capital(text: str) -> str:
    """Surnames and Transformers are written with a capital."""
    first, _, rest = text.partition(" ")
    known = ("luong", "bahdanau", "transformer")
    return f"{first.capitalize()} {rest}" if first in known else text
