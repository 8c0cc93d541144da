"""The end of a run in the terminal: the summary, or the failure and the command to resume."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from regard.components.common.run_record import FAILED, INTERRUPTED, STOPPED
from regard.components.data.layouts import describe_first_row
from regard.core import formatting
from regard.core.errors import Failure
from regard.pipeline.cli import terminal
from regard.pipeline.prediction import sample_predictions
from regard.pipeline.runs.launch import RunResult
from regard.pipeline.runs.outcome import Outcome


def print_result(result: RunResult, console: Console, command: str) -> None:
    """Print the summary of a run, or why it failed.

    Args:
        result: The completed run.
        console: The console.
        command: The command that resumes the run.
    """
    if result.outcome.status == INTERRUPTED or result.outcome.failure is not None:
        console = terminal.failure_console(console)
        print_failure(result.outcome, str(result.run.log), console, command)
        return
    console.print()
    print_summary(result.summary, console)


def print_failure(outcome: Outcome, log: str, console: Console, command: str) -> None:
    """Print why a run failed or that it was interrupted, and the command that resumes it."""
    console.print()
    if outcome.status == INTERRUPTED:
        terminal.print_text(console, "Interrupted. Completed steps are saved. To resume:")
        terminal.print_text(console, f"  {command}")
        return
    failure = outcome.failure or Failure()
    head = f"{failure.node} failed: " if failure.node is not None else "The run failed: "
    terminal.print_text(console, (head, "bold red"), (failure.error, "red"))
    for name, text in (
        ("where", failure.where),
        ("fix", failure.remedy),
        ("log", log),
        ("resume", f"{command}   (completed steps are cached)"),
    ):
        if text:
            terminal.print_text(console, (f"  {name:<7} ", "bold"), text)


def print_summary(summary: Mapping[str, Any], console: Console) -> None:
    """Print the summary as a table, then examples and the next commands."""
    terminal.print_fields(list(_fields(summary)), console)
    for example in summary.get("examples", []):
        inputs, output, references = sample_predictions.display_texts(example)
        console.print()
        for text in inputs:
            terminal.print_text(console, f"  {text}")
        terminal.print_text(console, (f"  → {output}", "" if references else "green"))
        for text in references:
            terminal.print_text(console, (f"    reference: {text}", "dim"))
    if commands := summary.get("next"):
        console.print()
        for index, item in enumerate(commands):
            # Each command has a line of its own, without line breaks, so that it can be copied.
            label = "" if index else "next"
            terminal.print_text(console, f"{label:<6}", (f"{item['about']}:", "dim"))
            terminal.print_text(console, f"        {item['command']}")


def _fields(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    data = summary.get("data", {})
    if data.get("rows"):
        yield "data", ", ".join(f"{count:,} {split}" for split, count in data["rows"].items())
    for index, row in enumerate(data.get("first_rows", [])):
        yield "" if index else "first row", describe_first_row(row)
    for index, text in enumerate(summary.get("augmentation", [])):
        yield "" if index else "augmentation", text
    if data.get("spans"):
        yield "spans", formatting.format_spans(data["spans"])
    for index, finding in enumerate(data.get("findings", [])):
        yield "" if index else "warnings", finding
    if model := summary.get("model"):
        yield "model", _model_text(model)
    for index, score in enumerate(summary.get("scores", [])):
        yield "" if index else "scores", _score_text(score)
    if "blessing" in summary:
        yield "decision", summary["blessing"].get("sentence", "")
    if "pushed" in summary:
        version, path = summary["pushed"]["version"], summary["pushed"]["path"]
        passed = summary.get("blessing", {}).get("blessed", True)
        yield "published", f"version {version}{'' if passed else ' (--publish-anyway)'}: {path}"
    if "not_pushed" in summary:
        yield "not published", summary["not_pushed"]
    if "report" in summary:
        yield "report", summary["report"]
    stopped = [n for n, v in summary.get("nodes", {}).items() if v["state"] in (FAILED, STOPPED)]
    if stopped:
        yield "stopped at", ", ".join(stopped)


def _model_text(model: Mapping[str, Any]) -> str:
    epochs, stop_reason = model.get("epochs"), model.get("stop_reason")
    facts = (
        f"{model['parameters']:,} parameters" if "parameters" in model else "",
        formatting.format_count(epochs, "epoch") if epochs else "",
        formatting.format_count(model["steps"], "step") if "steps" in model else "",
        f"trained in {formatting.format_duration(model['seconds'])}" if "seconds" in model else "",
        f"stopped by {stop_reason}" if stop_reason else "",
    )
    return ", ".join(filter(None, facts))


def _score_text(score: Mapping[str, Any]) -> str:
    scale = score.get("scale", 100.0)
    text = f"{score.get('label', score['name'])} {formatting.value_with_interval(score, scale)}"
    baselines = [
        f"{baseline['label']}: {formatting.format_metric(baseline['value'], scale)}"
        for baseline in score.get("baselines", [])
    ]
    text += f" ({', '.join(baselines)})" if baselines else ""
    return f"{text}  {score.get('signature', '')}".rstrip()
