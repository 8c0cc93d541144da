"""The input pipeline: transformed rows as padded batches, divided among devices."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from typing_extensions import Self

from regard.components.common.row_files import LENGTHS, RowFiles
from regard.components.trainer.distributed import DeviceGroup
from regard.components.trainer.epoch_plan import Buckets, EpochPlan, TagSampling
from regard.components.trainer.subword_sampling import SubwordSampling
from regard.models.tasks.base import Columns, Task

_PARALLEL_BATCHES = 2
_PREFETCHED_BATCHES = 4
_NO_EPOCH = -1


@dataclasses.dataclass(frozen=True)
class Batches:
    """The batches of one split; the same in every run with the same seed.

    Rows of similar length share a batch, to keep the padding small. A batch holds as many rows as
    fit into ``batch_tokens`` padded tokens, source and target together. The batches of an epoch are
    planned from the stored lengths, and each is read when it is due.

    Args:
        files: the paths of files that Preprocess has written.
        feature_spec: their features, from the Transform graph.
        task: defines the model's inputs.
        batch_tokens: the token budget of a batch.
        max_length: the length limit in tokens, EOS included; longer rows are skipped.
        seed: of the order.
        max_rows: a limit on the transformed rows, drawn from all files; always the same rows.
        fixed_shapes: pad to the bound of the bucket instead of the longest row, and fill a bucket's
            last batch with empty rows, so that XLA compiles once per bucket.
        group: the devices that share each batch; None for a single device. Every worker makes the
            plan of a single device, and reads the rows of its own devices.
        sampling: draws segmentations of the texts; None for those of the tokenizer.
        tag_temperature: of the sampling of rows by their tag, the first token of a source; 1 for
            every row once in an epoch.
    """

    files: Sequence[str]
    feature_spec: dict[str, Any]
    task: Task
    batch_tokens: int
    max_length: int
    seed: int = 0
    max_rows: int | None = None
    fixed_shapes: bool = False
    group: DeviceGroup | None = None
    sampling: SubwordSampling | None = None
    tag_temperature: float = 1.0

    def with_batch_tokens(self, batch_tokens: int) -> Self:
        """Return batches of another size, from the same open files."""
        copy = dataclasses.replace(self, batch_tokens=batch_tokens)
        vars(copy)["_files"] = self._files
        return copy

    @functools.cached_property
    def buckets(self) -> Buckets:
        """The lengths that share a batch."""
        return Buckets.create(self.batch_tokens, self.max_length)

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """``[rows]``: the length of every training row, 0 if incomplete, -1 outside ``max_rows``.

        Raises:
            UserError: a file is missing or damaged.
        """
        lengths = self._files.lengths
        if self.max_rows is None:
            return lengths
        return np.where(self._files.sample(self.max_rows), lengths, -1)

    def count(self) -> dict[str, int]:
        """The numbers of rows that are ``usable``, ``incomplete`` and ``too_long``."""
        return {
            "usable": int(self.buckets.usable(self.lengths).sum()),
            "incomplete": int((self.lengths == 0).sum()),
            "too_long": int((self.lengths > self.max_length).sum()),
        }

    @functools.cached_property
    def size(self) -> int:
        """The number of batches in an epoch, the same in all of them."""
        return len(self._plan(0))

    def complete_rows(self, count: int) -> Iterator[Columns]:
        """The first complete training rows, as features without padding."""
        columns, numbers = self._files.read(np.flatnonzero(self.lengths > 0)[:count])
        arrays = [tf.constant(array) for array in itertools.chain(*columns)]
        features = self._features(arrays, tf.constant(numbers))
        for row in range(len(numbers)):
            yield {name: column[row] for name, column in features.items()}

    def epoch(
        self, number: int | None = None, skip: int = 0, batches: np.ndarray | None = None
    ) -> tf.data.Dataset:
        """The batches of one epoch, with a group as tuples with one part per local device.

        Args:
            number: the epoch, from 0, which seeds the order; None for the order of evaluation.
            skip: the number of batches to skip, which an interrupted run has trained on.
            batches: the numbers of the batches, int64; None for all.
        """
        epoch = _NO_EPOCH if number is None else number
        plan = self._plan(epoch)  # not in the threads below, which would plan twice
        numbers = np.arange(skip, len(plan)) if batches is None else batches
        dataset = tf.data.Dataset.from_tensor_slices(numbers).map(
            lambda batch: self._load(tf.constant(epoch, tf.int64), batch),
            num_parallel_calls=_PARALLEL_BATCHES,
            deterministic=True,
        )
        options = tf.data.Options()
        # Autotuning has nothing to tune here, and the end of an epoch would wait for its thread,
        # which wakes rarely, for up to a minute.
        options.autotune.enabled = False
        return dataset.prefetch(_PREFETCHED_BATCHES).with_options(options)

    @functools.cached_property
    def tag_sampling(self) -> TagSampling | None:
        """How often the rows of each tag are drawn in an epoch; None if each is drawn once."""
        if self.tag_temperature == 1:
            return None
        source = f"{self.task.description.text_features[0]}_ids"
        return TagSampling(self._files.first_values(source), self.tag_temperature)

    @functools.cached_property
    def _files(self) -> RowFiles:
        group = self.group
        part = (group.worker, group.workers) if group else (0, 1)
        return RowFiles(self.files, list(self._columns), part)

    @functools.cached_property
    def _columns(self) -> dict[str, Any]:
        return {name: spec for name, spec in self.feature_spec.items() if name != LENGTHS}

    @functools.cached_property
    def _plan(self) -> Callable[[int], EpochPlan]:
        """The function that plans an epoch; batches of the one before may still be read."""

        @functools.lru_cache(maxsize=2)
        def plan(epoch: int) -> EpochPlan:
            seed = None if epoch == _NO_EPOCH else (self.seed, epoch)
            return EpochPlan(self.lengths, self.buckets, seed, self.tag_sampling)

        return plan

    @functools.cached_property
    def _load(self) -> Callable[[tf.Tensor, tf.Tensor], Any]:
        """The function from the numbers of an epoch and a batch to tensors, traced once."""

        @tf.function(input_signature=[tf.TensorSpec([], tf.int64)] * 2, autograph=False)
        def load(epoch: tf.Tensor, batch: tf.Tensor) -> Any:
            if self.group is None:
                return self._load_part(epoch, batch, 0, 1)
            parts = map(self.group.device_number, range(self.group.local_devices))
            return tuple(self._load_part(epoch, batch, part, self.group.size) for part in parts)

        return load

    def _load_part(self, epoch: tf.Tensor, batch: tf.Tensor, part: int, parts: int) -> Columns:
        """Return one of several equal parts of a batch; the last ones are padded with empty rows.

        Here, rows become tensors.
        """

        def read(epoch: np.int64, batch: np.int64) -> list[np.ndarray]:
            rows, bucket = self._plan(int(epoch)).batch(int(batch))
            size = self.buckets.sizes[bucket] if self.fixed_shapes else len(rows)
            size = -(-size // parts)
            own = rows[part * size : (part + 1) * size]
            # An empty part has the shape of the first row.
            columns, references = self._files.read(own if len(own) else rows[:1])
            sizes = (len(own), size, self.buckets.bounds[bucket])
            return [*itertools.chain(*columns), references, *(np.array(n, np.int64) for n in sizes)]

        types = [
            kind for spec in self._columns.values() for kind in (_stored(spec.dtype), tf.int64)
        ]
        arrays = tf.numpy_function(read, [epoch, batch], [*types, *[tf.int64] * 4], stateful=False)
        *arrays, references, count, size, width = arrays
        for array in (*arrays, references):
            array.set_shape([None])
        features = self._features(arrays, references)
        if self.sampling is not None:
            features = self.sampling(features, tf.maximum(epoch, 0), batch, part)
        inputs = self.task.model_inputs(features)
        return {name: self._pad(name, one[:count], size, width) for name, one in inputs.items()}

    def _features(self, arrays: Sequence[tf.Tensor], references: tf.Tensor) -> Columns:
        """Return the features of training rows from the values and splits of each column."""
        features = {}
        for (name, spec), values, splits in zip(
            self._columns.items(), arrays[::2], arrays[1::2], strict=True
        ):
            values = tf.cast(values, spec.dtype)
            if isinstance(spec, tf.io.FixedLenFeature):
                features[name] = tf.reshape(values, [-1, *spec.shape])
            else:
                features[name] = tf.RaggedTensor.from_row_splits(values, splits, validate=False)
        return self.task.select_references(features, references)

    def _pad(self, name: str, tensor: tf.Tensor, rows: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        """Pad with empty rows and, for fixed shapes, the dimensions that depend on lengths."""
        shape = tf.shape(tensor, tf.int64)
        is_padded = self.fixed_shapes and name not in self.task.fixed_inputs
        padding = [
            width - shape[i] if is_padded and tensor.shape[i] is None else 0
            for i in range(1, len(tensor.shape))
        ]
        return tf.pad(tensor, [[0, count] for count in (rows - shape[0], *padding)])


def _stored(kind: tf.DType) -> tf.DType:
    """The type that a column of this type is stored as."""
    return tf.int32 if kind == tf.int64 else kind
