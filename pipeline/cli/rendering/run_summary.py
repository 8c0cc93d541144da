"""The end of a run in the terminal: the summary, or the failure and the command to resume."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from regard.components.common.formatting import (
    format_count,
    format_duration,
    format_metric,
    format_spans,
)
from regard.pipeline import run_store
from regard.pipeline.cli import terminal
from regard.pipeline.prediction import sample_predictions
from regard.pipeline.progress import FAILED, STOPPED

if TYPE_CHECKING:
    from rich.console import Console

    from regard.pipeline.run import Outcome, RunResult
    from regard.pipeline.run_store import Score
    from regard.pipeline.run_summary import ModelSummary, RunSummary


def print_result(result: RunResult, console: Console, command: str) -> None:
    """Print the summary of a run, or why it failed.

    Args:
        result: The completed run.
        console: The console.
        command: The command that resumes the run.
    """
    if result.outcome.status == run_store.INTERRUPTED or result.outcome.failure is not None:
        print_failure(result.outcome, str(result.run.log), console, command)
        return
    console.print()
    print_summary(result.summary, console)


def print_failure(outcome: Outcome, log: str, console: Console, command: str) -> None:
    """Print why a run failed or that it was interrupted, and the command that resumes it."""
    console.print()
    if outcome.status == run_store.INTERRUPTED:
        console.print(Text("Interrupted. Completed steps are saved. To resume:"))
        console.print(Text(f"  {command}"), soft_wrap=True)
        return
    failure = outcome.failure or {}
    head = f"{failure['node']} failed: " if "node" in failure else "The run failed: "
    console.print(
        Text(head, "bold red").append(Text(failure.get("error", ""), "red")), soft_wrap=True
    )
    for name, text in (
        ("where", failure.get("where")),
        ("fix", failure.get("remedy")),
        ("log", log),
        ("resume", f"{command}   (completed steps are cached)"),
    ):
        if text:
            console.print(Text(f"  {name:<7} ", "bold").append(Text(text, "")), soft_wrap=True)


def print_summary(summary: RunSummary, console: Console) -> None:
    """Print the summary as a table, then examples and the next commands."""
    terminal.print_fields(list(_fields(summary)), console)
    for example in summary.get("examples", []):
        inputs, output, references = sample_predictions.display_texts(example)
        console.print()
        for text in inputs:
            console.print(Text(f"  {text}"), soft_wrap=True)
        console.print(Text(f"  → {output}", "" if references else "green"), soft_wrap=True)
        for text in references:
            console.print(Text(f"    reference: {text}", "dim"), soft_wrap=True)
    if commands := summary.get("next"):
        console.print()
        for index, command in enumerate(commands):
            # Without line breaks, so that it can be copied.
            console.print(Text(f"{'' if index else 'next':<6}{command}"), soft_wrap=True)


def _fields(summary: RunSummary) -> Iterator[tuple[str, str]]:
    data = summary.get("data", {})
    if data.get("rows"):
        yield "data", ", ".join(f"{count:,} {split}" for split, count in data["rows"].items())
    if data.get("spans"):
        yield "spans", format_spans(data["spans"])
    for index, finding in enumerate(data.get("findings", [])):
        yield "" if index else "warnings", finding
    if model := summary.get("model"):
        yield "model", _model_text(model)
    for index, score in enumerate(summary.get("scores", [])):
        yield "" if index else "scores", _score_text(score)
    if "blessing" in summary:
        yield "decision", summary["blessing"].get("sentence", "")
    if "pushed" in summary:
        yield "published", f"version {summary['pushed']['version']}: {summary['pushed']['path']}"
    if "not_pushed" in summary:
        yield "not published", summary["not_pushed"]
    if "report" in summary:
        yield "report", summary["report"]
    stopped = [n for n, v in summary.get("nodes", {}).items() if v["state"] in (FAILED, STOPPED)]
    if stopped:
        yield "stopped at", ", ".join(stopped)


def _model_text(model: ModelSummary) -> str:
    facts = []
    if "parameters" in model:
        facts.append(f"{model['parameters']:,} parameters")
    if model.get("epochs"):
        facts.append(format_count(model["epochs"], "epoch"))
    if "steps" in model:
        facts.append(format_count(model["steps"], "step"))
    if "seconds" in model:
        facts.append(f"trained in {format_duration(model['seconds'])}")
    if model.get("stop_reason"):
        facts.append(f"stopped by {model['stop_reason']}")
    return ", ".join(facts)


def _score_text(score: Score) -> str:
    scale = score.get("scale", 100.0)
    text = f"{score.get('label', score['name'])} {format_metric(score['value'], scale)}"
    if interval := score.get("interval"):
        text += (
            f" [{format_metric(interval['low'], scale)}, {format_metric(interval['high'], scale)}]"
        )
    if baseline := score.get("baseline"):
        text += f" ({baseline['label']}: {format_metric(baseline['value'], scale)})"
    return f"{text}  {score.get('signature', '')}".rstrip()
