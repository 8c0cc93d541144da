"""The tables of a report, as rows of texts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from regard.components.common.formatting import (
    format_bytes,
    format_count,
    format_duration,
    format_metric,
    format_rows,
)
from regard.components.reporter.run_facts import RunFacts
from regard.components.reporter.summary_text import format_share

_SLICES = {
    "length": "input length",
    "oov": "share of out-of-vocabulary words",
    "target_overlap": "reference in the train split",
}
_PROBLEMS = {
    "encoding": "lines that are not UTF-8",
    "nul": "lines with a NUL character",
    "row": "invalid rows",
}
_ACTIONS = {"skip": "skipped", "replace": "repaired"}
_DRIFT = {
    "drift_words": "word frequencies (Jensen-Shannon divergence, 0 to 1)",
    "drift_oov": "out-of-vocabulary words (share above the expected)",
    "drift_lengths": "lengths (Jensen-Shannon divergence, 0 to 1)",
}


@dataclasses.dataclass(frozen=True)
class ScoreRow:
    """A metric of the model, of production and of a baseline."""

    label: str
    value: str
    interval: str
    lower_is_better: bool
    production: str
    difference: str
    p_value: str
    baseline: str
    signature: str


@dataclasses.dataclass(frozen=True)
class SliceRow:
    """A slice of the test split; ``fill`` is the length of a bar in percent."""

    name: str
    rows: int
    scores: Sequence[str]
    fill: float


@dataclasses.dataclass(frozen=True)
class SliceTable:
    """The slices of one kind, with the labels of the metrics."""

    kind: str
    labels: Sequence[str]
    rows: list[SliceRow]


@dataclasses.dataclass(frozen=True)
class CheckRow:
    """A check of the data or of the outputs, with examples of several texts each."""

    name: str
    count: int
    share: str
    limit: str
    action: str
    is_exceeded: bool
    examples: Sequence[Sequence[str]]


@dataclasses.dataclass(frozen=True)
class DriftRow:
    """A comparison with the data of the production model."""

    name: str
    feature: str
    value: str
    limit: str
    action: str
    is_exceeded: bool
    words: str


@dataclasses.dataclass(frozen=True)
class NodeRow:
    """A node of the pipeline; ``fill`` is the length of a bar in percent."""

    name: str
    state: str
    time: str
    memory: str
    fill: float


def score_table(facts: RunFacts) -> list[ScoreRow]:
    """The metrics of the test split."""
    production = facts.metrics.get("production") or {}
    baseline = facts.metrics.get("baseline") or {}
    comparison = production.get("comparison") or {}
    rows = []
    for name, metric in facts.metrics.get("metrics", {}).items():
        scale = metric["scale"]
        old = production.get("metrics", {}).get(name)
        rows.append(
            ScoreRow(
                label=metric["label"],
                value=format_metric(metric["value"], scale),
                interval=_format_interval(metric),
                lower_is_better=not metric["higher_is_better"],
                production=format_metric(old["value"], scale) if old else "",
                difference=_format_difference(metric, old["value"]) if old else "",
                p_value=_format_p_value(comparison) if comparison.get("metric") == name else "",
                baseline=format_metric(baseline["metrics"][name]["value"], scale)
                if baseline
                else "",
                signature=metric["signature"],
            )
        )
    return rows


def slice_tables(facts: RunFacts) -> list[SliceTable]:
    """The metrics of the slices, one table per kind of slice."""
    metrics = facts.metrics.get("metrics", {})
    labels = [metric["label"] for metric in metrics.values()]
    tables: dict[str, SliceTable] = {}
    for entry in facts.slices:
        scores = entry["scores"]["candidate"]
        kind = entry["kind"]
        table = tables.setdefault(kind, SliceTable(_SLICES.get(kind, kind), labels, []))
        first = next(iter(metrics), None)
        table.rows.append(
            SliceRow(
                name="other rows" if entry["name"] is None else entry["name"] or "(empty)",
                rows=entry["rows"],
                scores=[
                    format_metric(scores.get(name), metric["scale"])
                    for name, metric in metrics.items()
                ],
                fill=_bar_length(scores.get(first), metrics[first]) if first else 0.0,
            )
        )
    return list(tables.values())


def output_checks(facts: RunFacts) -> list[CheckRow]:
    """The checks for degenerate outputs, with examples of source, output and reason."""
    return [
        _check_row(
            entry["label"],
            entry["rows"],
            entry,
            entry["share"] > entry["limit"],
            [
                [
                    text
                    for text in (one["source"], one["hypothesis"] or "(empty)", one["description"])
                    if text
                ]
                for one in entry["examples"]
            ],
        )
        for entry in facts.degenerate_outputs.values()
    ]


def training_facts(facts: RunFacts) -> list[tuple[str, str]]:
    """Size, duration and end of the training."""
    training = facts.training
    if not training:
        return []
    counts = {
        "parameters": "parameters",
        "steps": "steps",
        "full epochs": "epochs",
        "tokens seen": "target_tokens",
    }
    entries = [(label, f"{training[key]:,}") for label, key in counts.items() if key in training]
    entries += [
        ("training time", format_duration(training["seconds"])),
        ("stopped by", training["stop_reason"]),
    ]
    if training.get("best_step"):
        entries.append(("best evaluation", f"step {training['best_step']:,}"))
    if training.get("average"):
        steps = ", ".join(f"{step:,}" for step in training["average"]["steps"])
        entries.append(("weights", f"average of steps {steps}"))
    for name, count in training.get("vocabulary_sizes", {}).items():
        entries.append((f"{name} vocabulary", f"{count:,} tokens"))
    for name, entry in (training.get("pretrained") or {}).items():
        label = f"tokens with pretrained vectors ({name})"
        entries.append((label, format_share(entry["share"])))
    return entries


def node_table(facts: RunFacts) -> list[NodeRow]:
    """Time and memory of the nodes."""
    longest = max((node.seconds or 0.0 for node in facts.info.nodes), default=0.0)
    return [
        NodeRow(
            node.name,
            node.state,
            format_duration(node.seconds),
            format_bytes(node.peak_bytes) if node.peak_bytes else "",
            round(100 * (node.seconds or 0.0) / longest, 1) if longest else 0.0,
        )
        for node in facts.info.nodes
    ]


def split_table(facts: RunFacts) -> list[list[str]]:
    """The numbers of rows of each split, and of those that can be trained on."""
    rows = []
    for split, count in facts.corpus.get("rows", {}).items():
        counts = facts.training.get("rows", {}).get(split, {})
        used = [
            f"{counts[key]:,}" if counts else "" for key in ("usable", "too_long", "incomplete")
        ]
        rows.append([split, f"{count:,}", *used])
    return rows


def data_checks(facts: RunFacts) -> list[CheckRow]:
    """The checks of the data; exceeded limits first."""
    rows = [
        _check_row(
            name.replace("_", " "),
            entry["count"],
            entry,
            entry["exceeded"],
            [*_sampling_note(entry), *map(_data_example, entry["examples"])],
        )
        for name, entry in facts.data_checks.get("checks", {}).items()
    ]
    return sorted(rows, key=lambda row: (not row.is_exceeded, not row.count))


def read_problems(facts: RunFacts) -> list[tuple[str, list[str]]]:
    """The lines that were skipped or repaired when the files were read, each kind with examples."""
    problems = []
    for key, entry in facts.corpus.get("problems", {}).items():
        kind, _, action = key.partition("/")
        name = f"{_PROBLEMS.get(kind, kind)}, {_ACTIONS.get(action, action)}: {entry['count']:,}"
        examples = [f"{one['file']}:{one['line']}: {one['text']}" for one in entry["examples"]]
        problems.append((name, examples))
    return problems


def drift_table(facts: RunFacts) -> list[DriftRow]:
    """The differences from the data of the production model."""
    rows = []
    for name, entry in (facts.data_checks.get("drift") or {}).get("checks", {}).items():
        changed = entry["features"].get(entry["feature"], {}).get("examples", [])
        rows.append(
            DriftRow(
                name=_DRIFT.get(name, name),
                feature=entry["feature"],
                value=f"{entry['value']:.4f}",
                limit=f"{entry['limit']:g}",
                action=entry["action"],
                is_exceeded=entry["exceeded"],
                words=", ".join(example["word"] for example in changed),
            )
        )
    return rows


def provenance_facts(facts: RunFacts) -> list[tuple[str, str]]:
    """The origin of the model, apart from its configuration."""
    return [*_provenance(facts), *facts.info.versions.items()]


def _provenance(facts: RunFacts) -> Iterator[tuple[str, str]]:
    info = facts.info
    if info.run:
        yield "run", info.run
    if facts.pushed.get("pushed"):
        yield "version", f"{info.name}@{facts.pushed['version']}: {facts.pushed['path']}"
    if fingerprint := info.fingerprint or facts.corpus.get("fingerprint"):
        yield "data fingerprint", fingerprint
    for source in facts.corpus.get("files", []):
        counts = ", ".join(f"{count:,} {split}" for split, count in source["rows"].items())
        yield "files", f"{', '.join(source['files'])} ({counts})"
    for span in facts.corpus.get("spans", []):
        version = f", version {span['version']}" if span.get("version") is not None else ""
        yield "span", f"{span['name']}{version} ({format_rows(span)})"
    if start := (facts.training.get("warm_start") or {}).get("model"):
        yield "initial weights", start
    seed = info.config.get("training", {}).get("seed")
    if seed is not None:
        yield "seed", str(seed)
    if production := facts.metrics.get("production"):
        yield "compared with", f"version {production['version']}"
    if facts.serving:
        yield "serving check", f"{facts.serving.get('rows', 0)} rows with identical outputs"
    if info.machine:
        yield "machine", info.machine


def _check_row(
    name: str,
    count: int,
    entry: Mapping[str, Any],
    is_exceeded: bool,
    examples: Sequence[Sequence[str]],
) -> CheckRow:
    share, limit = format_share(entry["share"]), format_share(entry["limit"])
    return CheckRow(name, count, share, limit, entry["action"], is_exceeded, examples)


def _sampling_note(entry: Mapping[str, Any]) -> list[list[str]]:
    if skipped := entry.get("capped"):
        return [
            [f"Only a sample was checked: {format_count(skipped, 'row')} of train not included."]
        ]
    return []


def _data_example(example: Mapping[str, str]) -> list[str]:
    texts = [example["where"], example["text"]]
    if "same_as" in example:
        texts.append(f"same as {example['same_as']}")
    return [*texts, *([example["detail"]] if "detail" in example else [])]


def _format_interval(metric: Mapping[str, Any]) -> str:
    interval = metric.get("interval")
    if not interval:
        return ""
    return " to ".join(format_metric(interval[end], metric["scale"]) for end in ("low", "high"))


def _format_difference(metric: Mapping[str, Any], old: float | None) -> str:
    """The difference from production, and whether it is an improvement."""
    new = metric["value"]
    if new is None or old is None or not math.isfinite(new) or not math.isfinite(old):
        return ""
    change = new - old
    if not change:
        return "none"
    is_better = (change > 0) == metric["higher_is_better"]
    sign = "+" if change > 0 else "−"
    return (
        f"{sign}{format_metric(abs(change), metric['scale'])}, {'better' if is_better else 'worse'}"
    )


def _format_p_value(comparison: Mapping[str, Any]) -> str:
    value = comparison.get("p_value")
    if value is None:
        return ""
    return f"{'under 0.001' if value < 0.001 else f'{value:.3f}'} ({comparison['test']})"


def _bar_length(value: float | None, metric: Mapping[str, Any]) -> float:
    """The length of a bar in percent; 0 for a metric without an upper bound."""
    if value is None or not math.isfinite(value) or not metric["higher_is_better"]:
        return 0.0
    return round(min(max(100 * value / metric["scale"], 0.0), 100.0), 1)
