"""What the end of a run means: its status, its exit code, and what the user is told."""

from __future__ import annotations

import dataclasses
import shlex
import signal
from typing import TYPE_CHECKING, Any

from pipeline import runs
from pipeline.progress import STOPPED, Progress

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline.runners.supervise import Ending

_STATUS = {runs.SUCCEEDED: 0, runs.FAILED: 1, runs.NOT_BLESSED: 3, runs.INTERRUPTED: 130}
_USER = 2
_MEMORY = {"Trainer": "training.batch_tokens", "Predictor": "evaluation.batch_size"}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a run ended, for ``run.json``, for the terminal and for the shell."""

    status: str
    exit_status: int
    failure: dict[str, Any] | None = None


def judge(ending: Ending, state: Progress) -> Outcome:
    """Puts together how the worker ended and what its nodes told."""
    if ending.interrupted and ending.status != 0:
        return Outcome(runs.INTERRUPTED, _STATUS[runs.INTERRUPTED])
    if ending.status != 0:
        failure = state.failure or _silent_failure(ending.status, state)
        code = _USER if failure.get("user") else _STATUS[runs.FAILED]
        return Outcome(runs.FAILED, code, failure)
    pusher = state.nodes.get("Pusher")
    pushed = pusher is None or pusher.properties.get("pushed_model", {}).get("pushed")
    status = runs.SUCCEEDED if pushed else runs.NOT_BLESSED
    return Outcome(status, _STATUS[status])


def _silent_failure(status: int, state: Progress) -> dict[str, Any]:
    """A worker that ended without telling why: killed, or crashed below Python."""
    node = next((node.name for node in state.nodes.values() if node.state == STOPPED), None)
    failure: dict[str, Any] = {} if node is None else {"node": node}
    if status == -signal.SIGKILL:
        reason = "the worker process was killed (signal 9), perhaps because memory ran out"
        remedy = "Give the machine more memory"
        smaller = _MEMORY.get(node or "")
        remedy += f", or {smaller} a smaller value." if smaller else "."
        return {**failure, "error": reason, "remedy": remedy}
    if status < 0:
        name = signal.Signals(-status).name
        return {**failure, "error": f"the worker process crashed with {name}"}
    if status == _USER:  # it found something to mend, but could not write an event about it
        reason = "the reason could not be written down; the disk may be full"
        return {**failure, "error": reason, "remedy": "Free some space.", "user": True}
    return {**failure, "error": f"the worker process ended with status {status}"}


def show(outcome: Outcome, summary: dict[str, Any], console: Console, config_path: str) -> None:
    """Prints the end of a run: the summary, or what failed and how to go on."""
    if outcome.status != runs.INTERRUPTED and outcome.failure is None:
        from pipeline.summary import show as show_summary

        console.print()
        show_summary(summary, console)
        return
    show_bad_end(outcome, summary["log"], console, f"regard run {shlex.quote(config_path)}")


def show_bad_end(outcome: Outcome, log: str, console: Console, again: str) -> None:
    """Prints why something has not come to its end, and the command by which it goes on."""
    from rich.text import Text

    console.print()
    if outcome.status == runs.INTERRUPTED:
        console.print(Text("Interrupted. What is done stays done; this goes on from there:"))
        console.print(Text(f"  {again}"), soft_wrap=True)
        return
    failure = outcome.failure or {}
    head = f"{failure['node']} failed: " if failure.get("node") else "The run failed: "
    console.print(Text(head, "bold red").append(Text(failure["error"], "red")), soft_wrap=True)
    for name, text in (
        ("where", failure.get("where")),
        ("remedy", failure.get("remedy")),
        ("log", log),
        ("go on", f"{again}   (what is done is skipped)"),
    ):
        if text:
            console.print(Text(f"  {name:<7} ", "bold").append(Text(text, "")), soft_wrap=True)
