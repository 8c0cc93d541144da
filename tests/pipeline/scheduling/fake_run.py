"""Leaves what ``regard run CONFIG`` leaves, in the time that a process takes to start.

What comes of it says a list. With --whole it also records data and settings, which takes longer.

The list is the file ``plan`` beside the configuration, a line a run: pushed, not blessed, failed,
refused, full (the disk), broken (before it begins), dies, or waits (until it is interrupted).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from pipeline import lock, runs
from pipeline.workspace import PipelinePaths, Workspace

FAILURES = {
    "failed": {"node": "Trainer", "error": "the worker process was killed (signal 9)"},
    "refused": {"node": "ExampleValidator", "error": "duplicates: 90% of the rows", "user": True},
    "full": {
        "node": "CorpusGen",
        "error": "No space left on device",
        "remedy": "Free some space on that disk, then start the run again: it goes on.",
        "user": True,
    },
}


def main(path: Path, whole: bool = True) -> int:
    plan = path.with_name("plan")
    todo = plan.read_text().splitlines()
    plan.write_text("".join(f"{line}\n" for line in todo[1:]))
    what = todo[0] if todo else "pushed"
    if what == "broken":
        print("error: data.train: there is no such file", file=sys.stderr)
        return 2
    paths = Workspace.from_environment().pipeline("tiny")
    with lock.acquire(paths.lock, wait=True) as held:
        run = runs.create(paths, pid=os.getpid(), config=str(path))
        held.describe(run.id)
        if whole:
            record(run, path, paths)
        if what == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if what.startswith("waits"):
            return wait(run, what)
        told = {"run": run.id}
        status = {"pushed": runs.SUCCEEDED, "not blessed": runs.NOT_BLESSED}.get(what, runs.FAILED)
        fields: dict = {"failure": FAILURES.get(what), "seconds": 1.0}
        if what == "pushed":
            fields["pushed_version"] = str(len(runs.runs_of(paths)))
        if what == "not blessed":
            told["blessing"] = {"sentence": "chrf is 3 less than that of tiny@1."}
        run.update(status=status, **fields)
        print(json.dumps(told))
    if status == runs.FAILED:
        return 2 if FAILURES[what].get("user") else 1
    return 0 if what == "pushed" else 3


def record(run: runs.Run, path: Path, paths: PipelinePaths) -> None:
    """What a run is known by."""
    from pipeline.commands.run import resolved_yaml
    from pipeline.config import load
    from pipeline.scheduling.look import look

    config = load(path)
    run.config.write_text(resolved_yaml(config))
    seen = look(config, paths)
    run.update(data_fingerprint=seen.fingerprint, word_vectors=seen.words)


def wait(run: runs.Run, what: str) -> int:
    """Goes on until it is interrupted, or so many seconds: ``waits 3``."""
    _, _, seconds = what.partition(" ")
    try:
        time.sleep(float(seconds or 60))
    except KeyboardInterrupt:
        run.update(status=runs.INTERRUPTED, seconds=1.0)
        return 130
    run.update(status=runs.SUCCEEDED, seconds=1.0, pushed_version="1")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[-1]), "--whole" in sys.argv))
