"""Files of transformed rows: Arrow record batches with checksums, from which any rows can be read.

A file is a stream of Arrow's IPC format. Its columns are lists, as those of tf.Examples are; one of
them holds the lengths of the training rows that a row makes.
"""

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from regard.core.errors import DataError
from regard.core.files import atomic_path
from regard.core.ragged import Ragged

LENGTHS = "training_lengths"  # the column of lengths
_CHECKSUM = "crc32"
_END = b"\xff\xff\xff\xff\0\0\0\0"  # of a stream; Arrow also accepts a stream without it
_REMEDY = "Restore the file, or make it again with `regard run --from Preprocess`."


def write_rows(
    path: str | os.PathLike[str], schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> None:
    """Write a file atomically; integers become 32 bits wide.

    Raises:
        pa.ArrowInvalid: an integer needs more than 32 bits.
    """
    narrow = {pa.large_list(pa.int64()): pa.large_list(pa.int32())}
    fields = [field.with_type(narrow.get(field.type, field.type)) for field in schema]
    schema = pa.schema(sorted(fields, key=lambda field: field.name))
    with (
        atomic_path(path) as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_stream(sink, schema) as writer,
    ):
        for batch in batches:
            batch = batch.select(schema.names).cast(schema)
            writer.write_batch(batch, custom_metadata={_CHECKSUM: str(_checksum(batch))})


class RowFiles:
    """The rows of a split, in memory maps of its files.

    Args:
        paths: the files.
        part: this process's number, and the number of processes that share the work of verifying
            checksums.

    Attributes:
        lengths: the lengths of all training rows, 0 if a row is incomplete; int32 ``[training
            rows]``.

    Raises:
        UserError: a file is missing or damaged.
    """

    def __init__(self, paths: Sequence[str], part: tuple[int, int] = (0, 1)):
        self._batches: list[pa.RecordBatch] = []
        lengths, counts = [np.zeros([0], np.int32)], [np.zeros([0], np.int64)]
        for path in paths:
            try:
                for batch, checksum in _read_batches(path):
                    batch.validate(full=True)
                    number, processes = part
                    if len(self._batches) % processes == number and checksum != _checksum(batch):
                        raise pa.ArrowInvalid("the checksum is wrong")
                    lengths.append(batch.column(LENGTHS).flatten().to_numpy())
                    counts.append(np.diff(batch.column(LENGTHS).offsets.to_numpy()))
                    columns = batch.drop_columns([LENGTHS])
                    if self._batches and columns.schema != self._batches[0].schema:
                        raise pa.ArrowInvalid("its columns are not those of the other files")
                    self._batches.append(columns)
            except Exception as error:  # a damaged file raises errors of many kinds
                message = f"The transformed rows cannot be read: {error}."
                raise DataError(message, str(path), _REMEDY) from error
        self.lengths = np.concatenate(lengths)
        self._row_starts = np.cumsum(np.concatenate([[0], *counts]))
        self._batch_starts = np.cumsum([0, *map(len, self._batches)])

    @property
    def column_names(self) -> list[str]:
        """The columns of a transformed row."""
        return self._batches[0].schema.names if self._batches else []

    def complete_rows(self) -> np.ndarray:
        """Return the number of a complete training row of each transformed row that has one."""
        numbers = np.flatnonzero(self.lengths > 0)
        rows = np.searchsorted(self._row_starts, numbers, side="right")
        return numbers[np.unique(rows, return_index=True)[1]]

    def sample(self, count: int) -> np.ndarray:
        """Draw rows from all files, always the same, as a mask of training rows."""
        counts = np.diff(self._row_starts)
        mask = np.zeros(len(counts), bool)
        mask[np.random.default_rng(0).permutation(len(counts))[:count]] = True
        return np.repeat(mask, counts)

    def first_values(self, name: str) -> np.ndarray:
        """Return the first value of an integer column for each training row of rows with values."""
        parts = []
        for batch in self._batches:
            column = batch.column(name)
            # An empty row at the end begins behind the last value.
            values = np.append(column.values.to_numpy(), 0)
            parts.append(values[column.offsets.to_numpy()[:-1]])
        return np.repeat(np.concatenate(parts), np.diff(self._row_starts))

    def read(self, numbers: np.ndarray) -> tuple[dict[str, Ragged], np.ndarray]:
        """Read training rows.

        Args:
            numbers: the numbers of the rows, at least one; their order is kept.

        Returns:
            The columns of their transformed rows, by name, and for each row the number of the
            training row among those of its transformed row.
        """
        rows = np.searchsorted(self._row_starts, numbers, side="right") - 1
        batches = np.searchsorted(self._batch_starts, rows, side="right") - 1
        places = zip(batches.tolist(), (rows - self._batch_starts[batches]).tolist(), strict=True)
        slices = [self._batches[batch].slice(row, 1) for batch, row in places]
        table = pa.Table.from_batches(slices).combine_chunks()
        columns = {}
        for name, column in zip(table.column_names, table.columns, strict=True):
            (chunk,) = column.chunks
            values, splits = chunk.flatten(), chunk.offsets.to_numpy()
            columns[name] = Ragged(values.to_numpy(zero_copy_only=False), splits - splits[0])
        return columns, numbers - self._row_starts[rows]


def _read_batches(path: str) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield the record batches with their checksums."""
    with pa.memory_map(path) as file:
        content = file.read_buffer()
    source = pa.BufferReader(content)
    for batch, metadata in pa.ipc.open_stream(source).iter_batches_with_custom_metadata():
        yield batch, int(metadata[_CHECKSUM])
    end = content.slice(max(0, content.size - len(_END))).to_pybytes()
    if source.tell() < content.size or end != _END:
        raise pa.ArrowInvalid("the file is truncated")


def _checksum(batch: pa.RecordBatch) -> int:
    return zlib.crc32(batch.serialize(), zlib.crc32(batch.schema.serialize()))
