"""Which rows are answered together, planned from their lengths and places alone."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence

from components.predictions import ROWS_A_GROUP
from components.predictor.rows import in_order, length, parse, records, shards
from models.tasks.features import Feature

# Rows that are sorted by their lengths, and whose answers are later brought back into order: so
# many are in memory at once, however large the split is.
WINDOW = 4 * ROWS_A_GROUP


@dataclasses.dataclass(frozen=True)
class Shard:
    """A file of the split.

    Attributes:
        path: the file.
        rows: of each of its records the row's number, in the order of the corpus.
        batches: of each of its records the batch that it is answered in.
        announced: how many batches are named before its records (see ``asking.read``).
    """

    path: str
    rows: Sequence[int]
    batches: Sequence[int]
    announced: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """The batches of a split; the longest rows are in the first.

    The largest batch shows at once whether the memory suffices, and the time left is never guessed
    too short.

    Attributes:
        shards: where the rows are.
        sizes: of each batch how many rows it has.
        windows: the batches of each ``WINDOW`` rows, which follow each other in the corpus.
    """

    shards: list[Shard]
    sizes: list[int]
    windows: list[list[int]]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(self.sizes)


def make(split: str, features: Sequence[Feature], batch_size: int) -> Plan:
    """Reads a split and keeps of each row where it is and how long it is.

    Args:
        split: its folder.
        features: those of the task.
        batch_size: rows a batch, at most.

    Raises:
        UserError: the examples lack a feature.
    """
    places, lengths, ends, files = [], [], [], shards(split)
    for path in files:
        for record in records(path):
            row = parse(record, features, path)
            places.append((sys.intern(row.file), row.line))
            lengths.append(length(row))
        ends.append(len(places))
    order = in_order(places)
    batches: list[list[int]] = []
    for start in range(0, len(order), WINDOW):
        window = sorted(order[start : start + WINDOW], key=lambda read: -lengths[read])
        batches += [window[at : at + batch_size] for at in range(0, len(window), batch_size)]
    batches.sort(key=lambda batch: -lengths[batch[0]])

    row_of, batch_of = [0] * len(order), [0] * len(order)
    for place, read in enumerate(order):
        row_of[read] = place
    windows: list[list[int]] = [[] for _ in range(0, len(order), WINDOW)]
    for number, batch in enumerate(batches):
        windows[row_of[batch[0]] // WINDOW].append(number)
        for read in batch:
            batch_of[read] = number
    starts = [0, *ends]
    found = [
        Shard(str(path), row_of[start:end], batch_of[start:end], 0 if start else len(batches))
        for path, start, end in zip(files, starts, ends, strict=False)
    ]
    return Plan(found, [len(batch) for batch in batches], windows)
