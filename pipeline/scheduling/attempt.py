"""One run in a process of its own, and what came of it."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipeline import progress, runs
from pipeline.runners import supervise
from pipeline.runners.failures import may_pass
from pipeline.runs import Run
from pipeline.scheduling.state import PUSHED, REFUSED
from pipeline.workspace import PipelinePaths

SUMMARY, OUTPUT = "summary.json", "output.txt"  # what the run printed on its two streams
_POLL_SECONDS = 0.5
_FEW = 300
_SOON = 60.0  # seconds from the start of an attempt to that of its process


@dataclass(frozen=True)
class Ending:
    """What came of an attempt.

    Attributes:
        status: ``pushed``, ``refused`` (data or settings are at fault), or a state of runs.
        text: the same in a sentence.
        run: the run's id; None where it did not come to begin.
        version: what was pushed.
        seconds: how long the run took.
        exit_status: of ``regard run``; None where nobody saw it.
    """

    status: str
    text: str
    run: str | None = None
    version: str | None = None
    seconds: float | None = None
    exit_status: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def command(config: Path) -> list[str]:
    """The command line of a run, which waits for another one that begins at the same moment."""
    return [sys.executable, "-m", "pipeline.cli", "run", str(config), "--wait", "--json"]


def now() -> float:
    """Seconds since 1970 as runs record them, whatever clock the schedule goes by."""
    return time.time()


def start(words: Sequence[str], folder: Path, home: Path) -> subprocess.Popen[bytes]:
    """Starts a run; what it prints goes to two files of the schedule's folder.

    Into files, and in a session of its own: the run outlives a scheduler that is killed, and a
    terminal's Ctrl-C reaches only the scheduler, which hands it on once.
    """
    with open(folder / SUMMARY, "wb") as out, open(folder / OUTPUT, "wb") as err:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=supervise.child_environment(home),
            start_new_session=True,
        )


def follow(
    process: subprocess.Popen[bytes],
    stopped: Callable[[], int],
    tick: Callable[[], None] = lambda: None,
) -> int:
    """Waits for a run to end, and returns its exit status.

    Args:
        process: as ``start`` gave it.
        stopped: how often we were asked to stop; each time, the run is asked once.
        tick: called now and then.
    """
    asked = 0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(_POLL_SECONDS)
        while asked < min(stopped(), 2):
            process.send_signal(signal.SIGINT)
            asked += 1
        tick()


def ending(paths: PipelinePaths, tried: dict[str, Any], exit_status: int | None = None) -> Ending:
    """What came of an attempt that no process works on any more.

    Args:
        paths: of the pipeline's folder.
        tried: the attempt, with its ``pid`` and the time it ``started``.
        exit_status: of the run, where somebody has seen it.
    """
    run = run_of(paths, tried)
    if run is None:
        if exit_status is None or exit_status < 0:
            return Ending(runs.KILLED, "ended before it began", exit_status=exit_status)
        return _never_began(paths, exit_status)
    record, status = run.record(), runs.status(run)
    told: dict[str, Any] = {
        "run": run.id,
        "seconds": record.get("seconds"),
        "exit_status": exit_status,
    }
    if status == runs.SUCCEEDED:
        version = record.get("pushed_version")
        text = f"pushed as {run.name}@{version}{_scores(record)}"
        return Ending(PUSHED, text, version=version, **told)
    if status == runs.NOT_BLESSED:
        return Ending(status, f"not pushed: {_why(paths, run)}{_scores(record)}", **told)
    if status == runs.FAILED:
        failure = record.get("failure") or {}
        text = f"{failure['node']}: " if failure.get("node") else ""
        text += _short(str(failure.get("error", "no reason was told")))
        if may_pass(failure):
            return Ending(runs.FAILED, f"failed: {text}", **told)
        return Ending(REFUSED, f"refused: {text}", **told)
    if status == runs.INTERRUPTED:
        return Ending(status, "interrupted", **told)
    return Ending(runs.KILLED, "killed", **told)


def run_of(paths: PipelinePaths, tried: dict[str, Any]) -> Run | None:
    """The run of an attempt; None where it has not begun."""
    for run in reversed(runs.runs_of(paths)):
        record = run.record()
        if record.get("started", 0.0) < tried["started"]:
            return None
        # The process id is not known where the scheduler was killed before it could write it.
        if tried.get("pid") in (None, record.get("pid")):
            return run
    return None


def doing(run: Run) -> str:
    """What a run does now, in a few words."""
    state = progress.read(run.events)
    node = state.running()
    if node is None:
        return state.starting or "starting"
    return f"{node.name}: {node.text}" if node.text else node.name


def is_whole(run: Run) -> bool:
    """Whether a run was asked for all nodes, not for a part of them."""
    record = run.record()
    return not record.get("first") and not record.get("last")


def _never_began(paths: PipelinePaths, exit_status: int) -> Ending:
    """A run that found its configuration, its data or the machine at fault before it began."""
    try:
        said = (paths.schedule / OUTPUT).read_text(encoding="utf-8", errors="replace")
    except OSError:
        said = ""
    lines = [line for line in said.splitlines() if line.strip()]
    told = next((line for line in lines if line.startswith("error: ")), lines[-1] if lines else "")
    text = _short(told.removeprefix("error: ")) or f"ended with status {exit_status}"
    status = runs.INTERRUPTED if exit_status == 130 else runs.FAILED
    return Ending(status, f"failed: {text}", exit_status=exit_status)


def _why(paths: PipelinePaths, run: Run) -> str:
    """Why a model was not pushed, as the run's own summary says it."""
    try:
        told = json.loads((paths.schedule / SUMMARY).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        told = {}
    if told.get("run") != run.id:  # another run's, or none
        return "the model is not good enough"
    return _short(told.get("not_pushed") or told.get("blessing", {}).get("sentence") or "")


def _scores(record: dict[str, Any]) -> str:
    from components.words import figure

    first = next(iter(record.get("scores") or []), None)
    if first is None:
        return ""
    label = first.get("label", first["name"])
    return f"; {label} {figure(first['value'], first.get('scale', 100.0))}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _FEW else f"{line[: _FEW - 1]}…"


def is_alive(tried: dict[str, Any]) -> bool:
    """Whether the process of an attempt is there, though nobody may wait for it any more."""
    import psutil

    try:
        process = psutil.Process(tried.get("pid") or 0)
        # Another process may have got the same number since.
        began = process.create_time() - tried["started"]
        return -_SOON < began < _SOON and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
