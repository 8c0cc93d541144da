"""The tables of a report, as plain rows of texts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from components.evaluator import blessing
from components.reporter import words
from components.reporter.facts import Facts
from components.words import counted, figure, rows_of, size

_SLICED = {
    "length": "length of the input",
    "oov": "share of new words",
    "seen": "reference seen in training",
}
_PROBLEMS = {"encoding": "lines that are not UTF-8", "nul": "lines with a NUL", "row": "bad rows"}
_DONE = {"skip": "left out", "replace": "repaired"}
_DRIFT = {
    "drift_words": "words: divergence, 0 to 1",
    "drift_oov": "new words: share above the expected",
    "drift_lengths": "lengths: divergence, 0 to 1",
}


def scores(facts: Facts) -> list[dict[str, Any]]:
    """The metrics: value, interval, those of production and of a baseline, the signature."""
    found = facts.metrics
    beside = found.get("production") or {}
    baseline = found.get("baseline") or {}
    compared = beside.get("comparison") or {}
    rows = []
    for name, metric in found.get("metrics", {}).items():
        scale = metric["scale"]
        old = beside.get("metrics", {}).get(name)
        row = {
            "label": metric["label"],
            "value": figure(metric["value"], scale),
            "interval": _interval(metric),
            "lower": not metric["higher_is_better"],
            "production": figure(old["value"], scale) if old else "",
            "difference": _difference(metric, old, scale) if old else "",
            "p_value": _p_value(compared) if compared.get("metric") == name else "",
            "signature": metric["signature"],
            "baseline": "",
        }
        if baseline:
            row["baseline"] = figure(baseline["metrics"][name]["value"], scale)
        rows.append(row)
    return rows


def slices(facts: Facts) -> list[dict[str, Any]]:
    """The parts of the test split by what they were made by, each with its metrics."""
    metrics = facts.metrics.get("metrics", {})
    tables: dict[str, list[dict[str, Any]]] = {}
    for part in facts.slices:
        values = [
            figure(part["candidate"].get(name), metric["scale"]) for name, metric in metrics.items()
        ]
        first = next(iter(metrics), None)
        name = "everything else" if part["name"] is None else part["name"] or "(empty)"
        tables.setdefault(part["slice"], []).append(
            {
                "name": name,
                "rows": part["rows"],
                "values": values,
                "fill": _fill(part["candidate"].get(first), metrics.get(first)),
            }
        )
    labels = [metric["label"] for metric in metrics.values()]
    return [
        {"by": _SLICED.get(kind, kind), "labels": labels, "rows": rows}
        for kind, rows in tables.items()
    ]


def degenerate(facts: Facts) -> list[dict[str, Any]]:
    """What is wrong with answers in ways that metrics hide; each with its worst examples."""
    return [
        _check(entry["label"], entry["rows"], entry, blessing.over(entry), _answers(entry))
        for entry in facts.degenerate.values()
    ]


def effort(facts: Facts) -> list[tuple[str, str]]:
    """What the training took, and why it ended."""
    found = facts.training
    if not found:
        return []
    counts = {
        "parameters": "parameters",
        "steps": "steps",
        "whole epochs": "epochs",
        "units trained on": "target_tokens",
    }
    rows = [(label, f"{found[key]:,}") for label, key in counts.items() if key in found]
    rows += [("time in steps", words.duration(found["seconds"])), ("ended by", found["finished"])]
    if found.get("best_step"):
        rows.append(("best evaluation", f"at step {found['best_step']:,}"))
    if found.get("averaged"):
        steps = ", ".join(f"{step:,}" for step in found["averaged"]["steps"])
        rows.append(("weights", f"the mean of those at the steps {steps}"))
    for name, count in found.get("pieces", {}).items():
        rows.append((f"vocabulary of {name}", f"{count:,} pieces"))
    for entry in (found.get("pretrained") or {}).values():
        if isinstance(entry, Mapping) and "share" in entry:
            rows.append(("pieces with pretrained vectors", words.share(entry["share"])))
    return rows


def nodes(facts: Facts) -> list[dict[str, Any]]:
    """The nodes with time and memory; ``fill`` is the share of the longest one's time."""
    longest = max((node.seconds or 0.0 for node in facts.about.nodes), default=0.0)
    return [
        {
            "name": node.name,
            "state": node.state,
            "time": words.duration(node.seconds),
            "memory": size(node.peak_bytes) if node.peak_bytes else "",
            "fill": round(100 * (node.seconds or 0.0) / longest, 1) if longest else 0.0,
        }
        for node in facts.about.nodes
    ]


def rows(facts: Facts) -> list[dict[str, str]]:
    """The rows of each split: all, and those that could be trained on."""
    found = []
    for split, count in facts.corpus.get("rows", {}).items():
        used = facts.training.get("rows", {}).get(split, {})
        found.append(
            {
                "split": split,
                "rows": f"{count:,}",
                "usable": f"{used['usable']:,}" if used else "",
                "too_long": f"{used['too_long']:,}" if used else "",
                "incomplete": f"{used['incomplete']:,}" if used else "",
            }
        )
    return found


def findings(facts: Facts) -> list[dict[str, Any]]:
    """What the data checks found; the most serious first."""
    found = [
        _check(name.replace("_", " "), entry["count"], entry, entry["exceeded"], _places(entry))
        for name, entry in facts.checks.get("checks", {}).items()
    ]
    return sorted(found, key=lambda entry: (not entry["over"], not entry["count"]))


def repairs(facts: Facts) -> list[dict[str, Any]]:
    """The lines that were left out or repaired when the files were read."""
    found = []
    for key, entry in facts.corpus.get("problems", {}).items():
        kind, _, action = key.partition("/")
        places = [f"{one['file']}:{one['line']}: {one['text']}" for one in entry["examples"]]
        found.append(
            {
                "name": f"{_PROBLEMS.get(kind, kind)}, {_DONE.get(action, action)}",
                "count": f"{entry['count']:,}",
                "examples": places,
            }
        )
    return found


def drift(facts: Facts) -> list[dict[str, Any]]:
    """How far the data is from that of the model in production, by what is compared."""
    return [
        {
            "name": _DRIFT.get(name, name),
            "feature": entry["feature"],
            "value": f"{entry['value']:.4f}",
            "limit": f"{entry['limit']:g}",
            "action": entry["action"],
            "over": entry["exceeded"],
            "most": _most_changed(entry),
        }
        for name, entry in (facts.checks.get("drift") or {}).get("checks", {}).items()
    ]


def _most_changed(entry: Mapping[str, Any]) -> str:
    """The words that changed most, where words were compared."""
    found = entry["features"].get(entry["feature"], {}).get("examples", [])
    return ", ".join(example["word"] for example in found)


def origin(facts: Facts) -> list[tuple[str, str]]:
    """Where the model comes from, apart from its configuration."""
    return [*_origin(facts), *facts.about.versions.items()]


def _origin(facts: Facts) -> Iterator[tuple[str, str]]:
    about = facts.about
    if about.run:
        yield "run", about.run
    if facts.pushed.get("pushed"):
        yield "version", f"{about.name}@{facts.pushed['version']}: {facts.pushed['path']}"
    if fingerprint := about.fingerprint or facts.corpus.get("fingerprint"):
        yield "data fingerprint", fingerprint
    for source in facts.corpus.get("files", []):
        counts = ", ".join(f"{count:,} {split}" for split, count in source["rows"].items())
        yield "files", f"{', '.join(source['files'])} ({counts})"
    for span in facts.corpus.get("spans", []):
        version = f", version {span['version']}" if span.get("version") is not None else ""
        yield "span", f"{span['name']}{version} ({rows_of(span)})"
    if start := (facts.training.get("warm_start") or {}).get("model"):
        yield "started from the weights of", start
    seed = about.config.get("training", {}).get("seed")
    if seed is not None:
        yield "seed", str(seed)
    beside = facts.metrics.get("production") or {}
    if beside:
        yield "compared with", f"version {beside['version']}"
    if facts.serving:
        yield "serving check", f"{facts.serving.get('rows', 0)} rows answered alike"
    if about.machine:
        yield "machine", about.machine


def _check(
    name: str, count: int, entry: Mapping[str, Any], over: bool, examples: list[list[str]]
) -> dict[str, Any]:
    """A row of a table of checks."""
    return {
        "name": name,
        "count": count,
        "share": words.share(entry["share"]),
        "limit": words.share(entry["limit"]),
        "action": entry["action"],
        "over": over,
        "examples": examples,
    }


def _answers(entry: Mapping[str, Any]) -> list[list[str]]:
    """The examples of a check of answers: what was asked, what was answered, why that is wrong."""
    return [
        [text for text in (one["source"], one["hypothesis"] or "(nothing)", one["told"]) if text]
        for one in entry["examples"]
    ]


def _places(entry: Mapping[str, Any]) -> list[list[str]]:
    """The examples of a check of data: where they stand, what they are, and what of them."""
    more = []
    if capped := entry.get("capped"):
        more.append([f"not all measured, there may be more: {counted(capped, 'row')} of train"])
    return more + [
        [
            one["where"],
            one["text"],
            *([f"as {one['same_as']}"] if "same_as" in one else []),
            *([one["told"]] if "told" in one else []),
        ]
        for one in entry["examples"]
    ]


def _interval(metric: Mapping[str, Any]) -> str:
    sure = metric.get("interval")
    if not sure:
        return ""
    return " to ".join(figure(sure[end], metric["scale"]) for end in ("low", "high"))


def _difference(metric: Mapping[str, Any], old: Mapping[str, Any], scale: float) -> str:
    """How much a metric is above or below another, and what that means."""
    values = metric["value"], old["value"]
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        return ""
    change = values[0] - values[1]
    if not change:
        return "none"
    better = (change > 0) == metric["higher_is_better"]
    sign = "+" if change > 0 else "−"
    return f"{sign}{figure(abs(change), scale)}, {'better' if better else 'worse'}"


def _p_value(compared: Mapping[str, Any]) -> str:
    value = compared.get("p_value")
    if value is None:
        return ""
    return f"{'under 0.001' if value < 0.001 else f'{value:.3f}'} ({compared['test']})"


def _fill(value: Any, metric: Mapping[str, Any] | None) -> float:
    """How much of a bar a value fills, in percent; nothing where the scale has no end."""
    if metric is None or not isinstance(value, int | float) or not math.isfinite(value):
        return 0.0
    if not metric["higher_is_better"]:
        return 0.0
    return round(min(max(100 * value / metric["scale"], 0.0), 100.0), 1)
