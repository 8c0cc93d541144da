"""Leaves the record of a run, in the time that a process takes to start.

The outcome is the next line of the file ``plan`` next to the configuration: pushed, not blessed,
failed, refused, full (disk), broken (before it starts), dies, or waits [SECONDS] (until it is
interrupted). With --whole it also records data and settings, which takes longer.
"""

import errno
import os
import signal
import sys
import time
from pathlib import Path

from regard.components.common import run_record
from regard.components.common.run_record import RunRecord
from regard.core.errors import Failure
from regard.pipeline.runners.failures import explain
from regard.pipeline.runs import store
from regard.pipeline.workspace import PipelinePaths, Workspace, lock_pipeline

FAILURES = {
    "failed": Failure(node="Trainer", error="the worker process was killed by signal 9"),
    "refused": Failure(node="ExampleValidator", error="duplicates: 90% of the rows", user=True),
    "full": explain(OSError(errno.ENOSPC, "No space left on device"), "CorpusGen"),
}


def main(path: Path, whole: bool = True) -> int:
    plan = path.with_name("plan")
    outcomes = plan.read_text().splitlines()
    plan.write_text("".join(f"{line}\n" for line in outcomes[1:]))
    outcome = outcomes[0] if outcomes else "pushed"
    if outcome == "broken":
        print("error: data.train: there is no such file", file=sys.stderr)
        return 2
    paths = Workspace.from_environment().pipeline("tiny")
    with lock_pipeline(paths.lock, wait=True) as guard:
        run = store.create(paths, RunRecord(pid=os.getpid(), config=str(path)))
        guard.describe(run.id)
        if whole:
            record_inputs(run, path, paths)
        if outcome == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if outcome.startswith("waits"):
            return wait(run, float(outcome.partition(" ")[2] or 60))
        status = {"pushed": run_record.SUCCEEDED, "not blessed": run_record.NOT_BLESSED}.get(
            outcome, run_record.FAILED
        )
        fields: dict = {"failure": FAILURES.get(outcome), "seconds": 1.0}
        if outcome == "pushed":
            fields["pushed_version"] = str(len(store.runs_of(paths)))
        if outcome == "not blessed":
            fields["reason"] = "chrf is 3 less than that of tiny@1."
        run.update(RunRecord(status=status, **fields))
    if status == run_record.FAILED:
        return 2 if FAILURES[outcome].user else 1
    return 0 if outcome == "pushed" else 3


def record_inputs(run: store.Run, path: Path, paths: PipelinePaths) -> None:
    """Records the configuration and the digests of the data."""
    from regard.pipeline.config import load
    from regard.pipeline.runs.launch import resolved_yaml
    from regard.pipeline.scheduling.snapshot import take_snapshot

    config = load(path)
    run.config.write_text(resolved_yaml(config))
    snapshot = take_snapshot(config, paths)
    run.update(RunRecord(data_fingerprint=snapshot.fingerprint, word_vectors=snapshot.word_files))


def wait(run: store.Run, seconds: float) -> int:
    """Waits until it is interrupted, or for some seconds."""
    try:
        time.sleep(seconds)
    except KeyboardInterrupt:
        run.update(RunRecord(status=run_record.INTERRUPTED, seconds=1.0))
        return 130
    run.update(RunRecord(status=run_record.SUCCEEDED, seconds=1.0, pushed_version="1"))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[-1]), "--whole" in sys.argv))
