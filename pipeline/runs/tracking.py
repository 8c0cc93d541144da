"""Record a finished run with the trackers of its configuration, each in a process of its own.

A tracker imports many packages and may wait for a server, so it can neither slow the run down by
more than a limit nor fail it: ``python -m regard.pipeline.runs.tracking FOLDER TRACKER``.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from regard.components.common.run_record import DONE
from regard.core.formatting import truncate
from regard.core.processes import (
    ChildProcess,
    child_environment,
    describe_exit,
    end_with_parent,
)
from regard.pipeline.config import config_from_values
from regard.pipeline.config.tracking import TrackedRun, TrackingConfig
from regard.pipeline.lineage.config_changes import flatten
from regard.pipeline.runs.store import REPORT, Run
from regard.pipeline.runs.summary import training_record

MAX_SECONDS = 120.0  # for one tracker
_MAX_REASON = 600  # characters
# TensorBoard's names of the training's history; the others are metrics of the eval split.
_CURVES = dict.fromkeys(("step", "epoch", "seconds"), "") | {"train_loss": "train/loss"}
_CURVES |= {key: f"train/{key}" for key in ("learning_rate", "tokens_per_second")}


def record_run(run: Run, tracking: TrackingConfig, seconds: float = MAX_SECONDS) -> Iterator[str]:
    """Record a finished run, and yield a message about each tracker.

    Args:
        run: The run, with its final record.
        tracking: The section ``tracking``.
        seconds: The time after which a tracker is stopped.
    """
    for name in tracking.trackers:
        log = run.directory / f"{name}.txt"
        command = [sys.executable, "-m", "regard.pipeline.runs.tracking", str(run.directory), name]
        environment = child_environment()
        try:
            with ChildProcess(command, log, None, run.directory, environment) as process:
                status = process.wait(seconds)
            lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
        except (OSError, KeyboardInterrupt) as error:  # the run itself is complete
            status = 1
            lines = [str(error) or "interrupted"]
        text = truncate(next(filter(None, reversed(lines)), ""), _MAX_REASON)
        if status is None:
            text = f"no answer within {seconds:.0f} s"
        warning = "" if status == 0 else "warning: the run is not recorded completely: "
        yield f"{name}: {warning}{text or describe_exit(status or 0)}"


def tracked_run(run: Run) -> TrackedRun:
    """Collect what trackers record from the folder of a run."""
    record = run.record()
    state = run.progress()
    training = training_record(state)
    started = record.started or 0.0
    ended = record.ended or 0.0
    metrics: list[tuple[str, float, float, int]] = []
    for entry in training.get("history", []):
        at = (min(started + entry["seconds"], ended), entry["step"])
        curves = {_CURVES.get(key, f"eval/{key}"): value for key, value in entry.items()}
        metrics += [(key, value, *at) for key, value in curves.items() if key]
    scores = {score["name"]: score["value"] for score in record.scores}
    at = (ended, training.get("steps", 0))
    metrics += [(f"test/{key}", value, *at) for key, value in scores.items() if value is not None]
    report = state.output_folder("Reporter", "report") / REPORT
    is_new = record.pushed_version and state.nodes["Pusher"].state == DONE
    settings = flatten(run.settings()).items()
    return TrackedRun(
        record.to_dict(),
        {key: value if isinstance(value, str) else json.dumps(value) for key, value in settings},
        metrics,
        report if report.is_file() else None,
        Path(str(state.pushed_model()["pushed_destination"])) if is_new else None,
    )


if __name__ == "__main__":
    end_with_parent()
    folder = Run(Path(sys.argv[1]))
    tracker = config_from_values(folder.settings()).tracking.trackers[sys.argv[2]]
    print(tracker.record(tracked_run(folder)), flush=True)
    os._exit(0)  # without waiting for threads of the tracker
