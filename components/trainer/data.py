"""Transformed examples as padded batches within a budget of tokens."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from models.tasks.base import Task

_SHUFFLE_ROWS = 1_000_000
_PARSE_AT_ONCE = 512


@dataclasses.dataclass(frozen=True)
class Batches:
    """The batches of one split, the same in every run with the same seed.

    Rows of like length share a batch, since padding is work for nothing. A batch holds as many
    rows as fit into ``batch_tokens`` padded tokens, both sides counted.

    Args:
        files: patterns of gzipped TFRecords.
        feature_spec: what they hold, from the Transform graph.
        task: says what a row's length and a model's inputs are.
        batch_tokens: the budget of one batch.
        max_length: longer rows are left out, in pieces with EOS.
        seed: of the order.
        most: only so many transformed rows, always the same, drawn from all of the files.
        fixed_shapes: pad to the bound of a bucket, not only to the longest row of a batch, and
            fill up a bucket's last batch with empty rows, so that XLA compiles once a bucket.
    """

    files: Sequence[str]
    feature_spec: dict[str, object]
    task: Task
    batch_tokens: int
    max_length: int
    seed: int = 0
    most: int | None = None
    fixed_shapes: bool = False

    def paths(self) -> list[str]:
        """The files.

        Raises:
            FileNotFoundError: there is none.
        """
        found = sorted(path for pattern in self.files for path in tf.io.gfile.glob(pattern))
        if not found:
            raise FileNotFoundError(f"no transformed examples match {list(self.files)}")
        return found

    def rows(self, epoch: int | None = None) -> tf.data.Dataset:
        """Single rows to train on, in the order of the files or, for an epoch, shuffled."""
        records = tf.data.TFRecordDataset(self.paths(), compression_type="GZIP")
        if self.most is not None:  # of all of them: corpora are sorted by length and source
            records = records.shuffle(_SHUFFLE_ROWS, seed=0, reshuffle_each_iteration=False).take(
                self.most
            )
        if epoch is not None:  # while they are still strings, which take little memory
            records = records.shuffle(_SHUFFLE_ROWS, seed=self.seed + epoch)
        parsed = records.batch(_PARSE_AT_ONCE).map(
            lambda batch: tf.io.parse_example(batch, self.feature_spec), num_parallel_calls=2
        )
        options = tf.data.Options()
        # Nothing here is to be tuned, and the tuning thread wakes so rarely that the end of an
        # epoch waits for it, up to a minute.
        options.autotune.enabled = False
        rows = parsed.unbatch().map(
            lambda row: {name: _values(value) for name, value in row.items()}
        )
        if self.task.several:
            rows = rows.flat_map(
                lambda row: tf.data.Dataset.from_tensor_slices(self.task.spread(row))
            )
        return rows.with_options(options)

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """The length of every row, 0 where a row is not complete; one pass over the data."""
        lengths = self.rows().map(
            lambda row: tf.where(self.task.is_complete(row), self.task.length(row), 0)
        )
        parts = list(lengths.batch(1 << 16).as_numpy_iterator())
        return np.concatenate(parts) if parts else np.zeros([0], np.int32)

    def count(self) -> dict[str, int]:
        """How many rows there are: ``usable``, ``incomplete`` and ``too_long``."""
        lengths = self.lengths
        return {
            "usable": int(((lengths > 0) & (lengths <= self.max_length)).sum()),
            "incomplete": int((lengths == 0).sum()),
            "too_long": int((lengths > self.max_length).sum()),
        }

    @property
    def files_apart(self) -> int:
        """Among how many workers the files are divided."""
        return 1

    def size(self) -> int:
        """How many batches an epoch has."""
        bounds, sizes = self.buckets()
        usable = self.lengths[(self.lengths > 0) & (self.lengths <= self.max_length)]
        filled = np.bincount(np.searchsorted(bounds, usable, side="right"), minlength=len(sizes))
        return int(sum(-(-int(n) // size) for n, size in zip(filled, sizes, strict=True)))

    def epoch(self, number: int | None = None, skip: int = 0) -> tf.data.Dataset:
        """The batches of one epoch, shuffled by its number; ``None``: in order, for evaluation.

        Args:
            number: which epoch, from 0.
            skip: leave out so many batches, those that an interrupted run has seen.
        """

        def usable(row: dict[str, tf.Tensor]) -> tf.Tensor:
            return self.task.is_complete(row) & (self.task.length(row) <= self.max_length)

        inputs = (
            self.rows(number)
            .filter(usable)
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
        batches = batches.map(self._full if self.fixed_shapes else lambda _, batch: batch)
        if number is not None:
            # Buckets fill at their own pace; without this, rare lengths would come last.
            batches = batches.shuffle(256, seed=self.seed + number)
        # Keras takes a data set of unknown size for one that ran out.
        rest = tf.data.experimental.assert_cardinality(self.size() - skip)
        return batches.skip(skip).apply(rest).prefetch(4)

    def _full(self, lengths: tf.Tensor, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The batch with as many rows as its bucket has; those added are padding alone."""
        bounds, sizes = self.buckets()
        bucket = tf.searchsorted(bounds, lengths[:1], side="right")
        missing = tf.gather(sizes, bucket)[0] - tf.shape(lengths)[0]
        return {
            name: tf.pad(part, [[0, missing], *[[0, 0]] * (len(part.shape) - 1)])
            for name, part in batch.items()
        }

    def buckets(self) -> tuple[list[int], list[int]]:
        """Boundaries (exclusive upper lengths) and the rows of a batch in each bucket."""
        upper, length = [], 8
        while length < self.max_length:
            upper.append(length)
            length = max(length + 2, int(length * 1.15))
        upper.append(self.max_length)
        sizes = [max(1, self.batch_tokens // (2 * bound)) for bound in upper]
        return [bound + 1 for bound in upper], [*sizes, 1]


def _values(value: tf.Tensor | tf.SparseTensor | tf.RaggedTensor) -> tf.Tensor:
    return value.values if isinstance(value, tf.SparseTensor) else tf.convert_to_tensor(value)
