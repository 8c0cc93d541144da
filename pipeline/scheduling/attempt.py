"""Start a run in a child process, and find its outcome."""

import functools
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from regard.components.common.run_record import FAILED, INTERRUPTED, KILLED, NOT_BLESSED, SUCCEEDED
from regard.core.errors import Failure
from regard.core.formatting import format_duration, format_score
from regard.core.processes import ChildProcess, child_environment
from regard.pipeline.runners.failures import is_transient
from regard.pipeline.runs import store
from regard.pipeline.runs.store import Run
from regard.pipeline.scheduling.state import PUSHED, REFUSED, Attempt
from regard.pipeline.workspace import PipelinePaths

OUTPUT = "output.txt"  # standard output and error of the run
_shorten = functools.partial(textwrap.shorten, width=300, placeholder=" …")
_MAX_START_SECONDS = 60.0  # from the start of an attempt to that of its process


def run_command(config: Path, verbose: bool = False) -> list[str]:
    """Return the command line of a run. It waits for a run that starts at the same moment.

    Args:
        config: The YAML file.
        verbose: Whether its output has the logs of the nodes.
    """
    command = [sys.executable, "-m", "regard.pipeline.cli", "run", str(config), "--wait"]
    return [*command, "--verbose"] if verbose else command


def start_run(command: Sequence[str], folder: Path, home: Path) -> ChildProcess:
    """Start a run with its output in a file of the schedule's folder.

    It survives a killed scheduler, and Ctrl-C in a terminal reaches the scheduler only, which
    forwards it once.
    """
    environment = child_environment(REGARD_HOME=str(home))
    return ChildProcess(command, log=folder / OUTPUT, environment=environment, detached=True)


def finish_attempt(
    paths: PipelinePaths, attempt: Attempt, now: float, exit_status: int | None = None
) -> Attempt:
    """Return an attempt with the outcome of its process, which has ended.

    Args:
        paths: the pipeline's folder.
        attempt: the attempt.
        now: seconds since 1970.
        exit_status: the exit status of the run, if observed.
    """
    run = find_run(paths, attempt)
    end = {"data": None, "earlier_runs": None, "ended": now, "exit_status": exit_status}
    attempt = attempt.model_copy(update=end)
    if run is None:
        attempt.status, attempt.text = _read_start_failure(paths, exit_status)
        return attempt
    record, status = run.record(), store.status(run)
    attempt.run, attempt.seconds, text = run.id, record.seconds, status
    if status == SUCCEEDED:
        status, attempt.version = PUSHED, record.pushed_version
        text = f"pushed as {run.name}@{attempt.version}{_format_score(run)}"
    elif status == NOT_BLESSED:
        reason = _shorten(record.reason or "").removesuffix(".")
        text = f"not pushed: {reason}{_format_score(run)}"
    elif status == FAILED:
        failure = record.failure or Failure(error="unknown reason")
        status = FAILED if is_transient(failure) else REFUSED
        node = f"{failure.node}: " if failure.node else ""
        text = f"{status}: {node}{_shorten(failure.error)}"
    attempt.status, attempt.text = status, text
    return attempt


def find_run(paths: PipelinePaths, attempt: Attempt) -> Run | None:
    """Return the run of an attempt; None if it has not started."""
    for run in reversed(store.runs_of(paths)):
        record = run.record()
        if attempt.earlier_runs is None:  # an earlier version of Regard recorded the attempt
            is_earlier = (record.started or 0.0) < attempt.started
        else:
            is_earlier = run.id in attempt.earlier_runs
        # The process id is unknown if the scheduler was killed before it could record it.
        if not is_earlier and attempt.pid in (None, record.pid):
            return run
    return None


def is_alive(attempt: Attempt) -> bool:
    """Return whether the process of an attempt exists, even if it is no longer our child."""
    import psutil

    try:
        process = psutil.Process(attempt.pid or 0)
        delay = process.create_time() - attempt.started  # another process may reuse the id
        is_ours = -_MAX_START_SECONDS < delay < _MAX_START_SECONDS
        return is_ours and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def format_attempt(attempt: Attempt) -> str:
    """Format an attempt in one line."""
    if attempt.ended is None:
        return "in progress, or its end was not recorded"
    facts = [format_duration(attempt.seconds)] if attempt.seconds is not None else []
    facts += [f"status {attempt.exit_status}"] if attempt.exit_status is not None else []
    return f"{attempt.name}: {attempt.text}" + (f" ({', '.join(facts)})" if facts else "")


def _read_start_failure(paths: PipelinePaths, exit_status: int | None) -> tuple[str, str]:
    """Return status and text for a run that ended before it had a record."""
    if exit_status is None or exit_status < 0:
        return KILLED, "ended before it started"
    try:
        output = (paths.schedule / OUTPUT).read_text(encoding="utf-8", errors="replace")
    except OSError:
        output = ""
    lines = [line for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error: ")] or lines[-1:]
    text = _shorten(errors[0].removeprefix("error: ")) if errors else f"status {exit_status}"
    return INTERRUPTED if exit_status == 130 else FAILED, f"failed: {text}"


def _format_score(run: Run) -> str:
    scores = run.record().scores
    return f"; {format_score(scores[0])}" if scores else ""
