"""Checkpoints: one file that holds all a training needs to go on as if nothing had happened."""

from __future__ import annotations

import dataclasses
import json
import shutil
import time
from collections.abc import Iterable
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
        step: how many batches are done in all.
        seconds: the time spent on training, over all interruptions.
        tokens: the target pieces trained on.
        best: the best evaluation loss, in nats a piece; another one is better only where it is
            lower by ``early_stop.min_delta``.
        stale: how many evaluations ago that was.
        finished: why the training ended, or the empty string.
        history: one entry an evaluation.
    """

    epoch: int = 0
    batch: int = 0
    step: int = 0
    seconds: float = 0.0
    tokens: int = 0
    best: float = float("inf")
    stale: int = 0
    finished: str = ""
    history: list[dict[str, float]] = dataclasses.field(default_factory=list)


class Checkpoints:
    """The checkpoints of one training, in one folder.

    ``last.npz`` is where it stands (weights, optimizer, random state, position), ``best.npz``
    the weights with the least evaluation loss. Each is written whole or not at all.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)

    def save(self, model: keras.Model, position: Position) -> None:
        """Writes ``last.npz``."""
        self._write("last.npz", _state(model), position)

    def restore(self, model: keras.Model) -> Position | None:
        """Takes the state up again; None if there is none."""
        return self._read("last.npz", _state(model))

    def save_best(self, model: keras.Model, position: Position) -> None:
        """Writes ``best.npz``."""
        self._write("best.npz", model.weights, position)

    def restore_best(self, model: keras.Model) -> Position | None:
        """Gives the model its best weights; None if nothing has been evaluated."""
        return self._read("best.npz", model.weights)

    def prune_others(self, keep: int) -> None:
        """Removes the folders of older trainings beside this one, but for the newest ``keep``."""
        others = [path for path in self.folder.parent.iterdir() if path != self.folder]
        others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in others[keep:]:
            shutil.rmtree(path, ignore_errors=True)

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


def _state(model: keras.Model) -> list[Any]:
    """Weights, random generators and the optimizer, in a fixed order."""
    return [*model.variables, *model.optimizer.variables]


class Saver(keras.callbacks.Callback):
    """Writes ``last.npz`` every so many seconds."""

    def __init__(self, checkpoints: Checkpoints, position: Position, every: float):
        super().__init__()
        self.checkpoints, self.position, self.every = checkpoints, position, every
        self._saved = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if time.monotonic() - self._saved >= self.every:
            self.checkpoints.save(self.model, self.position)
            self._saved = time.monotonic()
