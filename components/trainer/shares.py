"""Which rows each device of a team trains on."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from components.trainer.data import Batches
from components.trainer.team import Team


class ByRow:
    """Every worker reads all rows and makes the same batches, as one device would; of each batch
    every device has its part.

    Args:
        batches: the split's.
        team: the devices.
    """

    files_apart = 1

    def __init__(self, batches: Batches, team: Team):
        self._batches, self._team = batches, team

    def count(self) -> dict[str, int]:
        """How many rows there are, as ``Batches`` counts them."""
        return self._batches.count()

    def size(self) -> int:
        """How many batches an epoch has."""
        return self._batches.size()

    def epoch(self, number: int, skip: int = 0) -> tf.data.Dataset:
        """The batches of an epoch, each as one part a device of this worker."""
        first = self._team.number(0)

        def cut(batch: dict[str, tf.Tensor]) -> tuple[dict[str, tf.Tensor], ...]:
            parts = _parts(batch, self._team.size)
            return parts[first : first + self._team.devices]

        return _ready(self._batches.epoch(number, skip).map(cut), self.size() - skip)


class ByFile:
    """Every worker reads files of its own, and makes batches of their rows within its part of the
    budget; a batch of the training is one of each.

    A worker whose rows are at an end goes on with batches of padding, for all have to take part in
    every step.

    Args:
        batches: the split's.
        team: the devices.
    """

    def __init__(self, batches: Batches, team: Team):
        self._team = team
        self.files_apart = team.workers
        paths = batches.paths()
        budget = max(1, batches.batch_tokens // team.workers)
        self._all = [
            dataclasses.replace(batches, files=paths[i :: team.workers], batch_tokens=budget)
            for i in range(team.workers)
        ]

    def count(self) -> dict[str, int]:
        """How many rows all workers have, as ``Batches`` counts them; no file is read again."""
        counts = [batches.count() for batches in self._all]
        return {name: sum(count[name] for count in counts) for name in counts[0]}

    def size(self) -> int:
        """How many batches an epoch has: those of the worker that has most."""
        return max(batches.size() for batches in self._all)

    def epoch(self, number: int, skip: int = 0) -> tf.data.Dataset:
        """The batches of an epoch, each as one part a device of this worker."""
        own = self._all[self._team.worker]
        batches = own.epoch(number)
        empty = tf.data.Dataset.from_tensors(
            tf.nest.map_structure(_nothing, batches.element_spec)
        ).repeat(self.size() - own.size())
        cut = batches.concatenate(empty).skip(skip)
        return _ready(cut.map(lambda b: _parts(b, self._team.devices)), self.size() - skip)


def shared(batches: Batches, team: Team) -> ByRow | ByFile:
    """By file where every worker has one, else by row."""
    if team.workers > 1 and len(batches.paths()) >= team.workers:
        return ByFile(batches, team)
    return ByRow(batches, team)


def _parts(batch: dict[str, tf.Tensor], count: int) -> tuple[dict[str, tf.Tensor], ...]:
    """The batch in as many parts of as many rows; what is missing is padding alone."""
    rows = tf.shape(next(iter(batch.values())))[0]
    each = -(-rows // count)
    filled = {
        name: tf.pad(part, [[0, each * count - rows], *[[0, 0]] * (len(part.shape) - 1)])
        for name, part in batch.items()
    }
    return tuple(
        {name: part[i * each : (i + 1) * each] for name, part in filled.items()}
        for i in range(count)
    )


def _nothing(spec: tf.TensorSpec) -> tf.Tensor:
    return tf.zeros([size or 1 for size in spec.shape], spec.dtype)


def _ready(batches: tf.data.Dataset, size: int) -> tf.data.Dataset:
    return batches.apply(tf.data.experimental.assert_cardinality(size)).prefetch(4)


def note(shares: Batches | ByRow | ByFile, team: Team, files: int) -> str:
    """What is to be told of how the rows of so many files are shared."""
    if team.workers == 1:
        return f"{team.size} devices train together; each has its rows of every batch"
    if isinstance(shares, ByFile):
        return f"{team.workers} workers train together; each reads its own of {files} files"
    return (
        f"{team.workers} workers train together; the train split has {files} file"
        f"{'s' * (files != 1)}, fewer than workers, so each reads all and takes its rows"
    )
