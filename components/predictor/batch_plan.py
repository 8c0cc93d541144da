"""Plans the batches of a split from the lengths and positions of its rows."""

import dataclasses
import sys
from collections.abc import Sequence

from regard.components.common.artifact_files import split_shards
from regard.components.common.prediction_table import ROW_GROUP_SIZE
from regard.components.data.example_rows import read_rows
from regard.components.predictor import split_reader
from regard.core.features import Feature

# Rows that are sorted by length together, and whose outputs are in memory together later.
WINDOW = 4 * ROW_GROUP_SIZE


@dataclasses.dataclass(frozen=True)
class PlannedShard:
    """A file of the split.

    Attributes:
        path: the file.
        rows: the number of each record's row, in the order of the corpus.
        batches: the batch of each record.
        announced_batches: the number of batches that are announced before the records; see
            ``decode.read_shard``.
    """

    path: str
    rows: Sequence[int]
    batches: Sequence[int]
    announced_batches: int


@dataclasses.dataclass(frozen=True)
class BatchPlan:
    """The batches of a split, with the longest rows in the first.

    So the first batch shows whether the memory suffices, and the time left is not underestimated.

    Attributes:
        shards: the files.
        rows: the number of rows.
        windows: the batches of each ``WINDOW`` rows, which are consecutive in the corpus.
    """

    shards: list[PlannedShard]
    rows: int
    windows: list[list[int]]


def plan_batches(split: str, features: Sequence[Feature], batch_size: int) -> BatchPlan:
    """Read a split and plan its batches.

    Args:
        split: the split's folder.
        features: the task's features.
        batch_size: the maximum number of rows in a batch.
    """
    positions, lengths, ends, files = [], [], [], split_shards(split)
    for path in files:
        for example in read_rows(path, features):
            row = split_reader.to_row(example, features)
            positions.append((sys.intern(row.file), row.line))
            lengths.append(split_reader.row_length(row))
        ends.append(len(positions))
    order = split_reader.corpus_order(positions)
    batches: list[list[int]] = []
    for start in range(0, len(order), WINDOW):
        window = sorted(order[start : start + WINDOW], key=lambda record: -lengths[record])
        batches += [window[at : at + batch_size] for at in range(0, len(window), batch_size)]
    batches.sort(key=lambda batch: -lengths[batch[0]])

    row_of, batch_of = [0] * len(order), [0] * len(order)
    for row_number, record_number in enumerate(order):
        row_of[record_number] = row_number
    windows: list[list[int]] = [[] for _ in range(0, len(order), WINDOW)]
    for number, batch in enumerate(batches):
        windows[row_of[batch[0]] // WINDOW].append(number)
        for record_number in batch:
            batch_of[record_number] = number
    starts = [0, *ends]
    shards = [
        PlannedShard(path, row_of[start:end], batch_of[start:end], 0 if start else len(batches))
        for path, start, end in zip(files, starts, ends, strict=False)
    ]
    return BatchPlan(shards, len(order), windows)
