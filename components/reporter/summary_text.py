"""The summary of a run in one sentence."""

from collections.abc import Mapping
from typing import Any

from regard.components.reporter.run_facts import RunFacts
from regard.core.formatting import format_count, format_duration, value_with_interval

_STATUS = {
    "running": ": the run is in progress",
    "killed": ": the run was killed",
    "interrupted": ": the run was interrupted",
}


def describe_model(task: str, config: Mapping[str, Any]) -> str:
    """Describe the model, for example ``luong translation model with general attention``."""
    model = config.get("model", {})
    encoder, decoder = (model.get(part) or {} for part in ("encoder", "decoder"))
    encoders = encoder if isinstance(encoder, list) else [encoder]
    names = " + ".join(part.get("type", "") for part in encoders)
    kind = decoder.get("type", "") if decoder else names
    name = f"{kind} {task} model".strip().replace("_", "-")
    if "attention" in model and model["attention"] is None:
        return f"{name} without attention"
    attention = model.get("attention") or {}
    score = _type_name(attention.get("score")) or _type_name(decoder.get("score"))
    alignment = _type_name(attention.get("alignment"))
    parts = [part for part in (alignment, score) if part and part != "soft"]
    if not parts or kind == "transformer":
        return name
    return f"{name} with {' '.join(parts).replace('_', ' ')} attention"


def summarize_run(facts: RunFacts) -> str:
    """Summarize model, training, main metric and outcome in one sentence."""
    training = facts.training
    text = _capitalize_name(describe_model(facts.task, facts.config))
    article = "An" if text[0] in "aeiouAEIOU" else "A"
    text = f"{article} {text}"
    if training:
        steps, epochs = format_count(training["steps"], "step"), training["epochs"]
        effort = f"{steps} ({format_count(epochs, 'full epoch')})" if epochs else steps
        text += (
            f" ({training['parameters']:,} parameters), trained on "
            f"{training['rows']['train']['usable']:,} rows of {facts.run.name} for {effort} in "
            f"{format_duration(training['seconds'])},"
        )
    metrics = list(facts.metrics.get("metrics", {}).values())
    if metrics:
        value = value_with_interval(metrics[0], metrics[0]["scale"])
        rows = f"{facts.metrics['rows']:,} test rows"
        text += f" reaches {metrics[0]['label']} {value} on {rows}"
    elif not facts.metrics:
        text = f"{text.rstrip(',')}, not evaluated"
    return f"{text}{_outcome(facts)}."


def _outcome(facts: RunFacts) -> str:
    """The outcome of the run, as the end of a sentence."""
    if failure := facts.run.failure:
        return f": the run failed at {failure.node}" if failure.node else ": the run failed"
    if facts.run.status in _STATUS:
        return _STATUS[facts.run.status]
    if facts.pushed.get("pushed"):
        version = f"version {facts.pushed['version']}"
        if facts.blessing.get("blessed", True):
            return f"; it passed the evaluation gate and is {version}"
        return f"; it did not pass the evaluation gate, and was published as {version} all the same"
    if facts.blessing.get("blessed"):
        text = "; it passed the evaluation gate"
        return f"{text} but was not published" if facts.pushed else text
    return "; it did not pass the evaluation gate" if facts.blessing else ""


def _type_name(section: object) -> str:
    """The type of a part that is configured by its name or as a section."""
    if isinstance(section, Mapping):
        return str(section.get("type") or "")
    return section if isinstance(section, str) else ""


def _capitalize_name(text: str) -> str:
    """Capitalize surnames and Transformer."""
    first, _, rest = text.partition(" ")
    is_name = first in ("luong", "bahdanau", "transformer")
    return f"{first.capitalize()} {rest}" if is_name else text
