"""One trial, in a process of its own: the Trainer's own training with other values."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
import threading
import traceback
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any

import tensorflow as tf

from components import events
from components.errors import UserError
from components.files import atomic_path, atomic_write
from components.trainer.checkpoint import Position
from components.trainer.evaluating import NOT_MEASURED
from components.trainer.training import Source, train
from components.tuner.journal import DONE, FAILED, Result


@dataclasses.dataclass(frozen=True)
class Task:
    """What a trial's process is told.

    Attributes:
        folder: of this trial alone; a trial that was killed goes on with what is there.
        config: as ``run_fn`` takes it, with this trial's values and limits, and checkpoints in
            the folder.
        source: the rows.
        objective: what it is judged by.
        continued: the folder of the trial whose training it takes up; None: of none.
        threads: how many it may use; None: all.
    """

    folder: str
    config: dict[str, Any]
    source: Source
    objective: str
    continued: str | None = None
    threads: int | None = None


def checkpoints(folder: str | Path) -> Path:
    """Where a trial's checkpoints are."""
    return Path(folder) / "checkpoints"


def result_of(folder: str | Path) -> Result | None:
    """What a trial has found; None where it has not come to an end."""
    path = Path(folder) / "result.json"
    return Result(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def forget_failure(folder: str | Path) -> None:
    """Removes the result of a trial that failed, or it would stand for what happens next."""
    found = result_of(folder)
    if found is not None and found.state != DONE:
        Path(folder, "result.json").unlink()


def main(task: Task) -> None:
    """Trains, and leaves ``result.json``: the target of the process."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    folder = Path(task.folder)
    folder.mkdir(parents=True, exist_ok=True)
    found = result_of(folder)
    if found is not None and found.state == DONE:
        return  # the search was killed before it could note it down
    _print_to(folder / "log.txt")
    os.environ[events.VARIABLE] = str(folder / "events.jsonl")
    if task.threads:
        tf.config.threading.set_intra_op_parallelism_threads(task.threads)
        tf.config.threading.set_inter_op_parallelism_threads(task.threads)
    try:
        found = _run(task)
    except Exception as error:
        traceback.print_exc()
        found = Result(FAILED, error=_told(error))
    atomic_write(folder / "result.json", json.dumps(dataclasses.asdict(found)))


def _run(task: Task) -> Result:
    own = checkpoints(task.folder)
    # Without the other's checkpoints it begins at the beginning, and ends in the same place.
    if task.continued and not own.exists() and checkpoints(task.continued).exists():
        with atomic_path(own) as temporary:
            shutil.copytree(checkpoints(task.continued), temporary)
    log_dir = str(Path(task.folder) / "tensorboard")
    trained = train(task.config, task.source, log_dir, objective=task.objective)
    assert trained is not None  # one device, which is the chief
    return judge(trained.position, task.objective)


def judge(position: Position, objective: str) -> Result:
    """The result of a training: the measures of the weights that it would export.

    Raises:
        UserError: no evaluation gave a number.
    """
    kept = (entry for entry in position.history if entry["step"] == position.best_step)
    entry = position.averaged or next(kept, {})
    score = entry.get(objective, math.nan)
    if not math.isfinite(score):
        raise UserError(f"no evaluation has given a number for {objective}")
    told = (*NOT_MEASURED, "steps")
    measures = {name: value for name, value in entry.items() if name not in told}
    return Result(
        DONE,
        score=score,
        measures=measures,
        step=position.best_step,
        epochs=position.epoch,
        seconds=round(position.seconds, 1),
        finished=position.finished,
    )


def _told(error: Exception) -> str:
    """An error in one sentence."""
    if isinstance(error, UserError):
        return f"{error.where}: {error.message}" if error.where else error.message
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _print_to(log: Path) -> None:
    """Sends all that this process prints to a file, what libraries in C print too."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.close(descriptor)


def _end_with_parent() -> None:
    """Ends this process at once when the search is gone, whatever has ended it."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
