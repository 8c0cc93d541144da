"""The input pipeline: transformed examples as padded batches, sharded among devices."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from regard.components.trainer.distributed import DeviceGroup
from regard.models.tasks.base import Task

_SHUFFLE_BUFFER = 1_000_000  # rows
_OPEN_FILES = 64
_PARSE_BATCH = 512


@dataclasses.dataclass(frozen=True)
class Batches:
    """The batches of one split; the same in every run with the same seed.

    Rows of similar length share a batch, to keep the padding small. A batch holds as many rows as
    fit into ``batch_tokens`` padded tokens, source and target together.

    Args:
        files: the paths of gzipped TFRecord files.
        feature_spec: their features, from the Transform graph.
        task: defines a row's length and the model's inputs.
        batch_tokens: the token budget of a batch.
        max_length: the length limit in tokens, EOS included; longer rows are skipped.
        seed: of the order.
        max_rows: a limit on the transformed rows, drawn from all files; always the same rows in
            the same order.
        fixed_shapes: pad to the bound of the bucket instead of the longest row, and fill a bucket's
            last batch with empty rows, so that XLA compiles once per bucket.
        group: the devices that share each batch; None for a single device. Every worker reads all
            rows, and makes the batches that a single device would make.
    """

    files: Sequence[str]
    feature_spec: dict[str, object]
    task: Task
    batch_tokens: int
    max_length: int
    seed: int = 0
    max_rows: int | None = None
    fixed_shapes: bool = False
    group: DeviceGroup | None = None

    def rows(self, epoch: int | None = None) -> tf.data.Dataset:
        """Single training rows, in file order or, for an epoch, shuffled.

        Raises:
            tf.errors.NotFoundError: while the rows are read, a file is missing.
        """
        seed = None if epoch is None else self.seed + epoch
        records = _read_records(self.files, seed if self.max_rows is None else 0)
        if self.max_rows is not None:  # from the whole split: corpora are sorted by length, source
            records = records.take(self.max_rows)
        parsed = records.batch(_PARSE_BATCH).map(
            lambda batch: tf.io.parse_example(batch, self.feature_spec), num_parallel_calls=2
        )
        options = tf.data.Options()
        # Autotuning has nothing to tune here, and the end of an epoch would wait for its thread,
        # which wakes rarely, for up to a minute.
        options.autotune.enabled = False
        rows = parsed.unbatch().map(
            lambda row: {name: _dense(value) for name, value in row.items()}
        )
        if self.task.has_multiple_references:
            rows = rows.flat_map(
                lambda row: tf.data.Dataset.from_tensor_slices(self.task.expand(row))
            )
        return rows.with_options(options)

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """``[rows]``: the length of every row, 0 if it is incomplete; one pass over the data."""
        lengths = self.rows().map(
            lambda row: tf.where(self.task.is_complete(row), self.task.length(row), 0)
        )
        chunks = list(lengths.batch(1 << 16).as_numpy_iterator())
        return np.concatenate(chunks) if chunks else np.zeros([0], np.int32)

    def count(self) -> dict[str, int]:
        """The numbers of rows that are ``usable``, ``incomplete`` and ``too_long``."""
        lengths = self.lengths
        return {
            "usable": int(((lengths > 0) & (lengths <= self.max_length)).sum()),
            "incomplete": int((lengths == 0).sum()),
            "too_long": int((lengths > self.max_length).sum()),
        }

    def size(self) -> int:
        """The number of batches in an epoch."""
        bounds, sizes = self.buckets()
        usable = self.lengths[(self.lengths > 0) & (self.lengths <= self.max_length)]
        counts = np.bincount(np.searchsorted(bounds, usable, side="right"), minlength=len(sizes))
        return int(sum(-(-int(n) // size) for n, size in zip(counts, sizes, strict=True)))

    def epoch(self, number: int | None = None, skip: int = 0) -> tf.data.Dataset:
        """The batches of one epoch, with a group as tuples with one part per local device.

        Args:
            number: the epoch, from 0, which seeds the order; None for file order (evaluation).
            skip: the number of batches to skip, which an interrupted run has trained on.
        """

        def is_usable(row: dict[str, tf.Tensor]) -> tf.Tensor:
            return self.task.is_complete(row) & (self.task.length(row) <= self.max_length)

        inputs = (
            self.rows(number)
            .filter(is_usable)
            .map(
                lambda row: (self.task.length(row), self.task.model_inputs(row)),
                num_parallel_calls=2,
                deterministic=True,
            )
        )
        bounds, sizes = self.buckets()
        batches = inputs.bucket_by_sequence_length(
            lambda length, _: length,
            bucket_boundaries=bounds,
            bucket_batch_sizes=sizes,
            pad_to_bucket_boundary=self.fixed_shapes,
        )
        batches = batches.map(self._fill_bucket if self.fixed_shapes else lambda _, batch: batch)
        if number is not None:
            # Buckets fill at different rates; otherwise rare lengths would come last.
            batches = batches.shuffle(256, seed=self.seed + number)
        if self.group is not None:
            batches = batches.map(self._local_parts)
        # Keras takes a data set of unknown size for one that has run out.
        cardinality = tf.data.experimental.assert_cardinality(self.size() - skip)
        return batches.skip(skip).apply(cardinality).prefetch(4)

    def _local_parts(self, batch: dict[str, tf.Tensor]) -> tuple[dict[str, tf.Tensor], ...]:
        """Split the batch into a part of equal size per device; the last ones are padded."""
        assert self.group is not None
        rows = tf.shape(next(iter(batch.values())))[0]
        size = -(-rows // self.group.size)
        full = _pad_rows(batch, size * self.group.size - rows)
        devices = (self.group.device_number(i) for i in range(self.group.local_devices))
        return tuple(
            {name: tensor[i * size : (i + 1) * size] for name, tensor in full.items()}
            for i in devices
        )

    def _fill_bucket(self, lengths: tf.Tensor, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Pad the batch with empty rows to the batch size of its bucket."""
        bounds, sizes = self.buckets()
        bucket = tf.searchsorted(bounds, lengths[:1], side="right")
        return _pad_rows(batch, tf.gather(sizes, bucket)[0] - tf.shape(lengths)[0])

    def buckets(self) -> tuple[list[int], list[int]]:
        """Bucket boundaries (exclusive upper lengths) and the batch size of each bucket."""
        upper, length = [], 8
        while length < self.max_length:
            upper.append(length)
            length = max(length + 2, int(length * 1.15))
        upper.append(self.max_length)
        sizes = [max(1, self.batch_tokens // (2 * bound)) for bound in upper]
        return [bound + 1 for bound in upper], [*sizes, 1]


def _read_records(paths: Sequence[str], seed: int | None) -> tf.data.Dataset:
    """Serialized rows in file order or, with a seed, shuffled.

    A corpus that is larger than the shuffle buffer is often sorted by source, so its files are read
    in random order and interleaved. As serialized strings, the rows in the buffer need little
    memory.
    """

    def read(files: Sequence[str] | tf.Tensor) -> tf.data.Dataset:
        return tf.data.TFRecordDataset(files, compression_type="GZIP")

    if seed is None:
        return read(paths)
    files = tf.data.Dataset.from_tensor_slices(np.random.default_rng(seed).permutation(paths))
    records = files.interleave(read, cycle_length=_OPEN_FILES, num_parallel_calls=None)
    return records.shuffle(_SHUFFLE_BUFFER, seed=seed, reshuffle_each_iteration=False)


def _dense(value: tf.Tensor | tf.SparseTensor | tf.RaggedTensor) -> tf.Tensor:
    return value.values if isinstance(value, tf.SparseTensor) else tf.convert_to_tensor(value)


def _pad_rows(batch: dict[str, tf.Tensor], count: tf.Tensor) -> dict[str, tf.Tensor]:
    """The batch with ``count`` rows of zeros at its end."""
    return {
        name: tf.pad(tensor, [[0, count], *[[0, 0]] * (len(tensor.shape) - 1)])
        for name, tensor in batch.items()
    }
