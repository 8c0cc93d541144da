"""How the report says things: shares, times, and one sentence about the whole run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.reporter.facts import Facts
from components.words import counted, figure


def share(value: float) -> str:
    """A share as percents, with two digits that count: of what there is, or of what is missing."""
    if value in (0, 1):
        return f"{100 * value:.0f}%"
    if value > 0.99:
        return "over 99.9%" if value > 0.999 else f"{100 * value:.1f}%"
    return "under 0.01%" if value < 0.0001 else f"{100 * value:.2g}%"


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
    text = _capital(model_name(about.task, about.config))
    text = f"A{'n' if text[0] in 'aeiouAEIOU' else ''} {text}"
    if training:
        rows = training["rows"]["train"]["usable"]
        text += (
            f" ({training['parameters']:,} parameters), trained on {rows:,} rows of {about.name} "
            f"in {_effort(training)},"
        )
    metrics = list(facts.metrics.get("metrics", {}).values())
    if metrics:
        text += f" reaches {told_metric(metrics[0])} on {facts.metrics['rows']:,} test rows"
    elif not facts.metrics:
        text = f"{text.rstrip(',')} has not been judged"
    return f"{text}{_fate(facts)}."


def told_metric(metric: Mapping[str, Any]) -> str:
    """A metric with its interval: ``BLEU 35.61 (34.50 to 36.70)``."""
    text = f"{metric['label']} {figure(metric['value'], metric['scale'])}"
    sure = metric.get("interval")
    if not sure:
        return text
    low, high = (figure(sure[end], metric["scale"]) for end in ("low", "high"))
    return f"{text} ({low} to {high})"


def _fate(facts: Facts) -> str:
    """What became of it, as the end of a sentence."""
    about = facts.about
    if about.failure:
        where = about.failure.get("node")
        return f": the run failed{f' at {where}' if where else ''}"
    if about.status in ("running", "killed", "interrupted"):
        return {"running": ": the run goes on"}.get(about.status, f": the run was {about.status}")
    if facts.pushed.get("pushed"):
        return f"; it was blessed and pushed as version {facts.pushed['version']}"
    if facts.blessing.get("blessed"):
        return "; it was blessed, and not pushed" if facts.pushed else "; it was blessed"
    return "; it was not blessed" if facts.blessing else ""


def _effort(training: Mapping[str, Any]) -> str:
    """How long it was trained; the epochs are those that were finished."""
    steps, epochs = counted(training["steps"], "step"), training["epochs"]
    told = f"{steps} ({counted(epochs, 'whole epoch')})" if epochs else steps
    return f"{told} and {duration(training['seconds'])}"


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
