"""Checkpoints: one file with the complete state of a training, and the lock on their folder."""

import concurrent.futures
import contextlib
import dataclasses
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from regard.components.settings.trainer import NODE
from regard.core import events, locks, owned_folders
from regard.core.errors import UserError
from regard.core.files import atomic_path, remove_temporary_files

LAST, PREVIOUS = "last.npz", "previous.npz"
_LOCK = ".lock"
_SNAPSHOT = re.compile(r"step-\d+\.npz")


@dataclasses.dataclass
class TrainState:
    """The progress of a training.

    Attributes:
        epoch: the current epoch, from 0.
        epoch_batches: batches trained in the current epoch.
        batches: batches trained in all.
        step: updates of the weights.
        seconds: training time over all runs.
        tokens: target tokens (or other units of the model) trained on.
        best_score: the best evaluation; lower is better. It is the mean loss per unit, or a metric,
            negated if higher is better. An evaluation is better only if it is lower by
            ``early_stopping.min_delta``.
        best_step: the step of that evaluation.
        evals_since_best: evaluations since then.
        stop_reason: the limit that ended the training; empty while it runs.
        history: one entry per evaluation.
        snapshots: step and score of each evaluation whose weights are stored.
        average: the evaluation of the mean of these weights, at the end of the training.
    """

    epoch: int = 0
    epoch_batches: int = 0
    batches: int = 0
    step: int = 0
    seconds: float = 0.0
    tokens: int = 0
    best_score: float = float("inf")
    best_step: int = 0
    evals_since_best: int = 0
    stop_reason: str = ""
    history: list[dict[str, float]] = dataclasses.field(default_factory=list)
    snapshots: list[list[float]] = dataclasses.field(default_factory=list)
    average: dict[str, Any] = dataclasses.field(default_factory=dict)


class Checkpoints:
    """The checkpoints of one training, in one folder.

    ``last.npz`` holds the complete state (weights, optimizer, random generators, train state),
    ``previous.npz`` the state before it in case it is damaged, ``best.npz`` the weights of the best
    evaluation, ``step-<n>.npz`` weights for an average. Each file is replaced atomically, and has
    checksums, which are verified when it is read.

    A thread writes the files while the training continues: one after the other, each from a copy of
    the state in host memory. There is at most one copy, so the next file waits for the last one.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self._previous_snapshots: list[list[float]] = []
        self._writer = concurrent.futures.ThreadPoolExecutor(1, "checkpoint")
        self._pending: concurrent.futures.Future[None] | None = None

    def save(self, model: keras.Model, state: TrainState) -> None:
        """Write ``last.npz``; delete the snapshots that neither it nor the previous one lists."""
        snapshots = {_snapshot_name(n) for n, _ in [*state.snapshots, *self._previous_snapshots]}
        self._previous_snapshots = list(state.snapshots)
        self._write(LAST, self._variables(model), state, snapshots)

    def check(self) -> None:
        """Raise the error of a write that has failed since the last call; do not wait.

        Raises:
            OSError: the file could not be written; ``filename`` is its path.
        """
        if self._pending is not None and self._pending.done():
            self.close()

    def close(self) -> None:
        """Wait for the last write, and raise its error as ``check`` does."""
        if self._pending is not None:
            concurrent.futures.wait([self._pending])  # Ctrl-C may end this wait, but not the write
            pending, self._pending = self._pending, None
            pending.result()

    def exists(self) -> bool:
        """Whether there is a training to resume."""
        return any((self.folder / name).exists() for name in (LAST, PREVIOUS))

    def restore(self, model: keras.Model) -> TrainState | None:
        """Restore the complete state; None without a checkpoint. Deletes incomplete files.

        Raises:
            UserError: the last checkpoint and the one before it are damaged.
        """
        remove_temporary_files(self.folder)
        last, previous = self.folder / LAST, self.folder / PREVIOUS
        if not last.exists() and previous.exists():
            os.replace(previous, last)
        try:
            state = self._read(LAST, self._variables(model))
        except UserError:
            if not previous.exists():
                raise
            text = f"{last} is damaged; the training resumes from the checkpoint before it"
            events.emit("warning", node=NODE, text=text)
            os.replace(previous, last)
            state = self._read(LAST, self._variables(model))
        self._previous_snapshots = list(state.snapshots) if state else []
        return state

    def save_best(self, model: keras.Model, state: TrainState) -> None:
        """Write ``best.npz``."""
        self._write("best.npz", model.weights, state)

    def restore_best(self, model: keras.Model) -> TrainState | None:
        """Load the best weights into the model; None before the first evaluation."""
        return self._read("best.npz", model.weights)

    def save_snapshot(self, model: keras.Model, state: TrainState) -> None:
        """Write ``step-<n>.npz``, where n is the step."""
        self._write(_snapshot_name(state.step), model.weights, state)

    def restore_average(self, model: keras.Model, steps: Iterable[float]) -> None:
        """Load the mean of the snapshots of these steps (Vaswani et al. 2017, section 6.1)."""
        total: list[np.ndarray] = []
        count = 0
        for step in steps:
            _, arrays = self._load(self.folder / _snapshot_name(step), len(model.weights))
            values = [array.astype(np.float64) for array in arrays]
            total = [a + b for a, b in zip(total, values, strict=True)] if count else values
            count += 1
        for variable, value in zip(model.weights, total, strict=True):
            variable.assign((value / count).astype(variable.dtype))

    def create_folder(self) -> None:
        """Create the folder with the mark of checkpoints, unless it exists."""
        owned_folders.create(self.folder, owned_folders.CHECKPOINTS)

    def prune_others(self, keep: int) -> None:
        """Delete the folders of older trainings, except the newest ``keep`` and those in use.

        Only folders with the mark of checkpoints count: the parent may contain anything else.
        """
        others = [
            path
            for path in self.folder.parent.iterdir()
            if path != self.folder and owned_folders.is_owned(path, owned_folders.CHECKPOINTS)
        ]
        leftovers = [path for path in others if owned_folders.is_hidden(path)]
        complete = [path for path in others if not owned_folders.is_hidden(path)]
        complete.sort(key=_modification_time, reverse=True)
        for path in (*leftovers, *complete[keep:]):
            remove_unless_locked(path)

    def _variables(self, model: keras.Model) -> list[Any]:
        """Weights, random generators and optimizer, in a fixed order."""
        return [*model.variables, *model.optimizer.variables]

    def _write(
        self,
        name: str,
        variables: Iterable[Any],
        state: TrainState,
        snapshots: Collection[str] | None = None,
    ) -> None:
        self.close()
        arrays = {f"v{i}": np.asarray(v).copy() for i, v in enumerate(variables)}
        text = json.dumps(dataclasses.asdict(state))
        self._pending = self._writer.submit(self._write_file, name, arrays, text, snapshots)

    def _write_file(
        self,
        name: str,
        arrays: Mapping[str, np.ndarray],
        text: str,
        snapshots: Collection[str] | None,
    ) -> None:
        """Write a file; for ``last.npz``, keep the previous one, and only these snapshots."""
        path = self.folder / name
        if snapshots is not None and path.exists():
            os.replace(path, self.folder / PREVIOUS)
        try:
            with atomic_path(path) as temporary, open(temporary, "wb") as file:
                np.savez(file, allow_pickle=False, state=np.array(text), **arrays)
        except OSError as error:
            error.filename = str(path)
            raise
        if snapshots is None:
            return
        # Only now: an older state would list snapshots that do not exist.
        for snapshot in self.folder.iterdir():
            if _SNAPSHOT.fullmatch(snapshot.name) and snapshot.name not in snapshots:
                snapshot.unlink(missing_ok=True)

    def _read(self, name: str, variables: Iterable[Any]) -> TrainState | None:
        path = self.folder / name
        if not path.exists():
            return None
        variables = list(variables)
        state, arrays = self._load(path, len(variables))
        for variable, array in zip(variables, arrays, strict=True):
            variable.assign(array)
        return state

    def _load(self, path: Path, count: int) -> tuple[TrainState, list[np.ndarray]]:
        """Read a whole file before anything is changed.

        Raises:
            UserError: it is damaged or missing.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = [file[f"v{i}"] for i in range(count)]
                return TrainState(**json.loads(str(file["state"]))), arrays
        except PermissionError:
            raise
        except Exception as error:  # a damaged archive raises errors of many kinds
            remedy = f"Remove the folder {self.folder}; the training then starts again."
            message = f"The checkpoint cannot be read: {error or type(error).__name__}."
            raise UserError(message, str(path), remedy) from error


class NoCheckpoints(Checkpoints):
    """Checkpoints of a worker that is not the chief: nothing is changed, the chief sends all."""

    def create_folder(self) -> None:
        pass

    def save(self, model: keras.Model, state: TrainState) -> None:
        pass

    def restore(self, model: keras.Model) -> TrainState | None:
        return None

    def restore_average(self, model: keras.Model, steps: Iterable[float]) -> None:
        pass

    def _write(self, *arguments: Any) -> None:
        pass

    def _read(self, name: str, variables: Iterable[Any]) -> TrainState | None:
        return None


def _snapshot_name(step: float) -> str:
    return f"step-{step}.npz"


def _modification_time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another run has just removed it
        return 0.0


@contextlib.contextmanager
def checkpoint_lock(folder: str | Path) -> Iterator[None]:
    """Lock the checkpoint folder of a training; wait while another run of it holds the lock.

    Runs of a pipeline on a cluster share the parent folder, and two runs with equal data and
    settings are the same training.

    Args:
        folder: the folder; created if missing.
    """

    def report_wait() -> None:
        events.emit("note", node=NODE, text="waiting for another run of the same training")

    Checkpoints(folder).create_folder()  # with its mark, before the lock creates it without
    with contextlib.ExitStack() as stack:
        try:
            lock = locks.acquire(Path(folder) / _LOCK, timeout=None, on_wait=report_wait)
            stack.enter_context(lock)
        except locks.LocksUnsupportedError as error:
            text = f"Cannot lock {folder} ({error.strerror}). Start only one run of it at a time."
            events.emit("warning", node=NODE, text=text)
        yield


def remove_unless_locked(folder: Path) -> None:
    """Delete a checkpoint folder with its mark, unless a run holds its lock."""
    with contextlib.suppress(OSError):
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(FileNotFoundError, locks.LocksUnsupportedError):
                stack.enter_context(locks.acquire_existing(folder / _LOCK))
            hidden = owned_folders.hide(folder, owned_folders.CHECKPOINTS)
        # Without the lock, because NFS keeps the name of an open file.
        if hidden is not None:
            mark = owned_folders.mark_name(owned_folders.CHECKPOINTS)
            owned_folders.remove_content(hidden, mark)
