"""Checkpoints: one file that holds all a training needs to go on as if nothing had happened."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from components.files import atomic_path


@dataclasses.dataclass
class Position:
    """Where a training stands.

    Attributes:
        epoch: the epoch that runs, from 0.
        batch: how many of its batches are done.
        batches: how many batches are done in all.
        step: how many updates of the weights are done.
        seconds: the time spent on training, over all interruptions.
        tokens: the target pieces, or other units of the model, trained on.
        best_step: the step of the best weights.
        best: the best measure of an evaluation, lower is better: the loss of a unit, or a metric,
            with a minus where higher is better; another one is better only where it is lower by
            ``early_stop.min_delta``.
        stale: how many evaluations ago that was.
        waited: how many of these the learning rate has waited for, on a plateau.
        rate_scale: what plateaus have left of the learning rate.
        finished: why the training ended, or the empty string.
        history: one entry an evaluation.
        snapshots: the step and the measure of each evaluation whose weights are kept.
        averaged: the evaluation of the average of these, once the training has ended.
        files_apart: among how many workers the files are divided, which an epoch's batches depend
            on; 1 where all read the same.
    """

    epoch: int = 0
    batch: int = 0
    batches: int = 0
    step: int = 0
    seconds: float = 0.0
    tokens: int = 0
    best: float = float("inf")
    best_step: int = 0
    stale: int = 0
    waited: int = 0
    rate_scale: float = 1.0
    finished: str = ""
    history: list[dict[str, float]] = dataclasses.field(default_factory=list)
    snapshots: list[list[float]] = dataclasses.field(default_factory=list)
    averaged: dict[str, Any] = dataclasses.field(default_factory=dict)
    files_apart: int = 1


class Checkpoints:
    """The checkpoints of one training, in one folder.

    ``last.npz`` is where it stands (weights, optimizer, random state, position), ``best.npz``
    the weights of the best evaluation, ``step-<n>.npz`` those that are kept for an average. Each
    is written whole or not at all.

    Attributes:
        also: further variables of the state, such as a moving average.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.also: Sequence[Any] = ()

    def save(self, model: keras.Model, position: Position) -> None:
        """Writes ``last.npz``, and removes the snapshots that it no longer names."""
        self._write("last.npz", self._state(model), position)
        # Not before: an older last.npz would name snapshots that are gone.
        kept = {step for step, _ in position.snapshots}
        for path in self.folder.glob("step-*.npz"):
            number = re.fullmatch(r"step-(\d+)", path.stem)
            if number and int(number[1]) not in kept:
                path.unlink(missing_ok=True)

    def begun(self) -> bool:
        """Whether there is a training to go on with."""
        return (self.folder / "last.npz").exists()

    def restore(self, model: keras.Model) -> Position | None:
        """Takes the state up again; None if there is none. Removes what killed writes have left."""
        for path in self.folder.glob(".*.tmp"):
            path.unlink(missing_ok=True)
        return self._read("last.npz", self._state(model))

    def save_best(self, model: keras.Model, position: Position) -> None:
        """Writes ``best.npz``."""
        self._write("best.npz", model.weights, position)

    def restore_best(self, model: keras.Model) -> Position | None:
        """Gives the model its best weights; None if nothing has been evaluated."""
        return self._read("best.npz", model.weights)

    def save_snapshot(self, model: keras.Model, position: Position) -> None:
        """Writes ``step-<n>.npz``, n the step."""
        self._write(_snapshot(position.step), model.weights, position)

    def restore_average(self, model: keras.Model, steps: Iterable[float]) -> None:
        """Gives the model the mean of the snapshots of these steps (Vaswani et al. 2017, §6.1)."""
        total: list[np.ndarray] = []
        count = 0
        for step in steps:
            with np.load(self.folder / _snapshot(step)) as stored:
                values = [stored[f"v{i}"].astype(np.float64) for i in range(len(model.weights))]
            total = [a + b for a, b in zip(total, values, strict=True)] if count else values
            count += 1
        for variable, value in zip(model.weights, total, strict=True):
            variable.assign((value / count).astype(variable.dtype))

    def prune_others(self, keep: int) -> None:
        """Removes the folders of older trainings beside this one, but for the newest ``keep``."""
        others = [path for path in self.folder.parent.iterdir() if path != self.folder]
        others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in others[keep:]:
            shutil.rmtree(path, ignore_errors=True)

    def _state(self, model: keras.Model) -> list[Any]:
        """Weights, random generators, the optimizer and the rest, in a fixed order."""
        return [*model.variables, *model.optimizer.variables, *self.also]

    def _write(self, name: str, variables: Iterable[Any], position: Position) -> None:
        arrays = {f"v{i}": np.asarray(v) for i, v in enumerate(variables)}
        text = json.dumps(dataclasses.asdict(position))
        with atomic_path(self.folder / name) as temporary, open(temporary, "wb") as file:
            np.savez(file, allow_pickle=False, position=np.array(text), **arrays)

    def _read(self, name: str, variables: Iterable[Any]) -> Position | None:
        path = self.folder / name
        if not path.exists():
            return None
        with np.load(path) as stored:
            for i, variable in enumerate(variables):
                variable.assign(stored[f"v{i}"])
            return Position(**json.loads(str(stored["position"])))


class NoCheckpoints(Checkpoints):
    """Of a worker that is not the chief: it writes nothing, and has its state from the chief."""

    def restore_average(self, model: keras.Model, steps: Iterable[float]) -> None:
        pass

    def _write(self, name: str, variables: Iterable[Any], position: Position) -> None:
        pass

    def _read(self, name: str, variables: Iterable[Any]) -> Position | None:
        return None


def _snapshot(step: float) -> str:
    return f"step-{step}.npz"
