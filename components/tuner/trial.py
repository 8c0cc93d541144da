"""One trial: the Trainer's training with other values, in a process of its own.

Each trial has its own process so that its memory is released and a crash does not end the search.
"""

import contextlib
import dataclasses
import hashlib
import json
import math
import multiprocessing
import os
import shutil
import threading
import traceback
from collections.abc import Callable, Mapping
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any

from regard.components.settings.trainer import RunInputs, TrainerConfig, TrainingData, TrainingJob
from regard.components.trainer.checkpoint import TrainState
from regard.components.trainer.jax_job import TrainedWeights
from regard.components.trainer.jax_training import run_training
from regard.components.trainer.train import TrainingResult, WorkerResult, train
from regard.components.trainer.validation import PROGRESS_KEYS
from regard.core import events
from regard.core.errors import UserError
from regard.core.files import atomic_path, atomic_write
from regard.core.jobs import Job, JobProcess, describe_process_exit, run_jobs

_DIGEST = "sha256"  # a key


@dataclasses.dataclass(frozen=True)
class TrialTask:
    """The training of one trial.

    Attributes:
        folder: the trial's folder; an interrupted trial resumes from the checkpoint in it.
        config: a ``TrainerConfig`` as JSON values, with this trial's values and limits. The trial
            parses them: values that do not fit together are an error of this trial only.
        run: what the run adds to the settings, with the folder of this trial's checkpoints.
        source: the examples.
        objective: the measure to optimise.
        continued_from: the folder of the trial whose training this one continues, if any.
    """

    folder: str
    config: dict[str, Any]
    run: RunInputs
    source: TrainingData
    objective: str
    continued_from: str | None = None


@dataclasses.dataclass(frozen=True)
class TrialResult:
    """How a trial ended: with the score of the weights that it would export, or with an error.

    Attributes:
        score: the objective; None if the trial failed.
        metrics: all measures of these weights.
        step: the training step of these weights.
        epochs: trained epochs, including those of the trial that this one continued.
        seconds: training time, counted likewise.
        stop_reason: why the training ended.
        error: why the trial failed; else empty.
    """

    score: float | None = None
    metrics: dict[str, float] = dataclasses.field(default_factory=dict)
    step: int = 0
    epochs: int = 0
    seconds: float = 0.0
    stop_reason: str = ""
    error: str = ""


def checkpoint_folder(folder: str | Path) -> Path:
    """Return the folder of a trial's checkpoints."""
    return Path(folder) / "checkpoints"


def read_result(folder: str | Path) -> TrialResult | None:
    """Read how a trial ended; None if it has not ended."""
    path = Path(folder) / "result.json"
    return TrialResult(**read_state(path)) if path.exists() else None


def write_state(path: str | Path, state: Mapping[str, Any]) -> None:
    """Write a part of a search's state atomically, as JSON with its digest."""
    values = json.loads(json.dumps(state))  # as it is read
    atomic_write(path, json.dumps({**values, _DIGEST: _digest(values)}))


def read_state(path: Path) -> dict[str, Any]:
    """Read what `write_state` wrote.

    Raises:
        UserError: it is damaged.
    """
    with contextlib.suppress(ValueError, LookupError, AttributeError, TypeError):
        state = json.loads(path.read_bytes())
        if state.pop(_DIGEST) == _digest(state):
            return state
    remedy = "Run the same command with `--restart`; it runs all trials again."
    raise UserError("The state of the search is damaged.", str(path), remedy)


def _digest(state: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


class TrialJob(Job[TrialResult]):
    """The process of a trial.

    A trial that was interrupted resumes; one that completed is not run again; one that failed is.

    Args:
        task: what to train.
        on_progress: receives the trial's progress as a text and a fraction from 0 to 1.
    """

    def __init__(self, task: TrialTask, on_progress: Callable[[str, float], None]):
        self._folder = Path(task.folder)
        super().__init__(self._folder.name, self._folder / "log.txt")
        self._task, self._on_progress, self._offset = task, on_progress, 0

    def finished_result(self) -> TrialResult | None:
        result = read_result(self._folder)
        return None if result is None or result.error else result

    def start(self) -> JobProcess:
        for name in ("result.json", "events.jsonl"):  # of an earlier process
            (self._folder / name).unlink(missing_ok=True)
        return _TrialProcess(self._task)

    def watch(self) -> None:
        """Pass on the new progress events."""
        for event, end in events.read(self._folder / "events.jsonl", self._offset):
            self._offset = end
            if event.get("kind") == "progress":
                self._on_progress(str(event.get("text", "")), event.get("fraction") or 0.0)

    def result(self, status: int) -> TrialResult:
        result = read_result(self._folder)
        if result is None:
            result = TrialResult(error=describe_process_exit(status))
            write_state(self._folder / "result.json", dataclasses.asdict(result))
        return result


class _TrialProcess:
    """A process that is forked from one that has imported TensorFlow, once for all trials."""

    def __init__(self, task: TrialTask):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        self._process = context.Process(target=_train, args=(task,))
        self._process.start()

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self._process.is_alive() and self._process.pid is not None:
            os.kill(self._process.pid, number)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def run_trial(task: TrialTask, on_progress: Callable[[str, float], None]) -> TrialResult:
    """Run a trial in a new process, unless it has completed, and wait for it to end.

    Args:
        task: what to train.
        on_progress: receives the trial's progress as a text and a fraction from 0 to 1.
    """
    results: list[TrialResult] = []
    run_jobs([TrialJob(task, on_progress)], on_end=lambda end: results.append(end.result))
    return results[0]


def score_weights(state: TrainState, objective: str) -> TrialResult:
    """Return the result of a training: the measures of the weights that it would export.

    Raises:
        UserError: no evaluation gave a finite score.
    """
    best = (entry for entry in state.history if entry["step"] == state.best_step)
    entry = state.average or next(best, {})
    score = entry.get(objective, math.nan)
    if not math.isfinite(score):
        raise UserError(f"No evaluation gave a finite value of {objective}")
    return TrialResult(
        score=score,
        metrics={k: v for k, v in entry.items() if k not in (*PROGRESS_KEYS, "steps")},
        step=state.best_step,
        epochs=state.epoch,
        seconds=round(state.seconds, 1),
        stop_reason=state.stop_reason,
    )


def _train(task: TrialTask) -> None:
    """Train and write ``result.json``: the target of the trial's process."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    folder = Path(task.folder)
    folder.mkdir(parents=True, exist_ok=True)
    _redirect_output(folder / "log.txt")
    os.environ[events.VARIABLE] = str(folder / "events.jsonl")
    try:
        _copy_checkpoints(task)
        job = TrainingJob(
            config=TrainerConfig.model_validate(task.config),
            run=task.run,
            data=task.source,
            run_folder=str(folder / "tensorboard"),
        )
        trained: TrainedWeights | TrainingResult | WorkerResult
        if job.config.training.backend == "jax":
            trained = run_training(job, task.objective)
        else:
            trained = train(job, objective=task.objective)
        result = score_weights(trained.state, task.objective)
    except Exception as error:
        traceback.print_exc()
        result = TrialResult(error=_describe_error(error))
    write_state(folder / "result.json", dataclasses.asdict(result))


def _copy_checkpoints(task: TrialTask) -> None:
    """Start from the checkpoints of the continued trial, unless this one has its own.

    Without them the trial starts from the beginning, which gives the same result.
    """
    checkpoints = checkpoint_folder(task.folder)
    if task.continued_from is None or checkpoints.exists():
        return
    if checkpoint_folder(task.continued_from).exists():
        with atomic_path(checkpoints) as temporary:
            shutil.copytree(checkpoint_folder(task.continued_from), temporary)


def _describe_error(error: Exception) -> str:
    """Return an error in one line."""
    if isinstance(error, UserError):
        return f"{error.where}: {error.message}" if error.where else error.message
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _redirect_output(log: Path) -> None:
    """Append everything this process prints to a file, including the output of C libraries."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.close(descriptor)


def _exit_with_parent() -> None:
    """End this process as soon as the search's process has ended, for whatever reason."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
