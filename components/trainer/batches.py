"""The batches of a training as NumPy arrays: padded, and divided among devices."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from typing_extensions import Self

from regard.components.common.row_files import RowFiles
from regard.components.trainer.epoch_plan import GROWTH, Buckets, EpochPlan, TagSampling
from regard.components.trainer.subword_sampling import SubwordSampling
from regard.components.trainer.text_noise import TextNoise
from regard.models.tasks.network import Batch, Network, Rows


@dataclasses.dataclass(frozen=True)
class Sharing:
    """How the devices of a training share each batch.

    Attributes:
        worker: the number of this process.
        workers: the number of processes.
        local_devices: the number of devices of each process.
    """

    worker: int = 0
    workers: int = 1
    local_devices: int = 1

    @property
    def parts(self) -> int:
        """The number of parts of a batch."""
        return self.workers * self.local_devices

    @property
    def local_parts(self) -> range:
        """The numbers of the parts of this process."""
        first = self.worker * self.local_devices
        return range(first, first + self.local_devices)


@dataclasses.dataclass(frozen=True)
class Batches:
    """The batches of one split; the same in every run with the same seed.

    Rows of similar length share a batch, to keep the padding small. A batch holds as many rows as
    fit into ``batch_tokens`` padded tokens, source and target together. The batches of an epoch are
    planned from the stored lengths, and each is read when it is due.

    Args:
        files: the paths of files that Preprocess has written.
        network: defines the model's inputs.
        batch_tokens: the token budget of a batch.
        max_length: the length limit in tokens, EOS included; longer rows are skipped.
        seed: the seed of the order.
        max_rows: a limit on the transformed rows, drawn from all files; always the same rows.
        fixed_shapes: pad to the bound of a bucket instead of the longest row, and fill a bucket's
            last batch with empty rows, so that XLA compiles few shapes.
        row_multiple: with fixed shapes, empty rows fill each part of a batch up to a multiple of
            this number.
        growth: the ratio of the bounds of neighbouring buckets.
        sharing: how devices share each batch; None for a single device. Every worker makes the
            plan of a single device, and reads the rows of its own devices.
        noise: changes sources, before their segmentations are drawn; None for clean ones.
        sampling: draws segmentations of the texts; None for those of the tokenizer.
        tag_temperature: the temperature of the sampling of rows by their tag, the first token of a
            source; 1 for every row once in an epoch.
    """

    files: Sequence[str]
    network: Network
    batch_tokens: int
    max_length: int
    seed: int = 0
    max_rows: int | None = None
    fixed_shapes: bool = False
    row_multiple: int = 1
    growth: float = GROWTH
    sharing: Sharing | None = None
    noise: TextNoise | None = None
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
        return Buckets.create(self.batch_tokens, self.max_length, self.growth)

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

    def complete_rows(self, count: int) -> Iterator[dict[str, np.ndarray]]:
        """Yield the first complete training rows, each as the values of its columns."""
        numbers = np.flatnonzero(self.lengths > 0)[:count]
        columns = self._training_rows(numbers) if len(numbers) else {}
        for row in range(len(numbers)):
            yield {name: column[row] for name, column in columns.items()}

    def read(self, epoch: int | None, number: int, part: int = 0, parts: int = 1) -> Batch:
        """Return a batch, or one of several equal parts of it.

        The last parts are padded with empty rows.

        Args:
            epoch: the epoch, from 0, which seeds the order; None for the order of evaluation.
            number: the number of the batch in the epoch.
            part: the number of the part.
            parts: the number of parts.
        """
        rows, bucket = self._plan(epoch).batch(number)
        size = self._fixed_rows(bucket) if self.fixed_shapes else len(rows)
        size = -(-size // parts)
        part_rows = rows[part * size : (part + 1) * size]
        # An empty part has the shape of the first row.
        read_rows = part_rows if len(part_rows) else rows[:1]
        columns = self._training_rows(read_rows)
        if self.noise is not None:
            columns = self.noise(columns, epoch or 0, read_rows)
        if self.sampling is not None:
            columns = self.sampling(columns, epoch or 0, number, part)
        width = int(self.buckets.bounds[bucket]) if self.fixed_shapes else 0
        return {
            name: self._pad(name, array[: len(part_rows)], size, width)
            for name, array in self.network.model_inputs(columns).items()
        }

    def read_local(self, epoch: int | None, number: int) -> Batch:
        """Return the part of a batch that the devices of this process share."""
        sharing = self.sharing or Sharing()
        return self.read(epoch, number, sharing.worker, sharing.workers)

    def count_rows(self, epoch: int | None, number: int) -> int:
        """Return the number of rows of a batch, without the empty ones that pad it."""
        return len(self._plan(epoch).batch(number)[0])

    def plan(self, epoch: int | None) -> int:
        """Plan an epoch before several threads read its batches, and return their number."""
        return len(self._plan(epoch))

    @functools.cached_property
    def specs(self) -> dict[str, tuple[np.dtype, tuple[int | None, ...]]]:
        """The type and the shape of each array of a batch; None for what differs in size."""
        usable = np.flatnonzero(self.buckets.usable(self.lengths))
        specs = {}
        for name, array in self.network.model_inputs(self._training_rows(usable[:1])).items():
            variable = {0, *self.network.variable_axes[name]}
            shape = (None if axis in variable else size for axis, size in enumerate(array.shape))
            specs[name] = (array.dtype, tuple(shape))
        return specs

    @functools.cached_property
    def tag_sampling(self) -> TagSampling | None:
        """How often the rows of each tag are drawn in an epoch; None if each is drawn once."""
        if self.tag_temperature == 1:
            return None
        source = f"{self.network.description.text_features[0]}_ids"
        return TagSampling(self._files.first_values(source), self.tag_temperature)

    @functools.cached_property
    def _files(self) -> RowFiles:
        sharing = self.sharing or Sharing()
        return RowFiles(self.files, (sharing.worker, sharing.workers))

    @functools.cached_property
    def _plan(self) -> Callable[[int | None], EpochPlan]:
        """The function that plans an epoch; batches of the one before may still be read."""

        @functools.lru_cache(maxsize=2)
        def plan(epoch: int | None) -> EpochPlan:
            seed = None if epoch is None else (self.seed, epoch)
            return EpochPlan(self.lengths, self.buckets, seed, self.tag_sampling)

        return plan

    def _fixed_rows(self, bucket: int) -> int:
        """Return the number of rows of each batch of a bucket, empty ones included."""
        multiple = self.row_multiple * (self.sharing.parts if self.sharing else 1)
        return -(-int(self.buckets.sizes[bucket]) // multiple) * multiple

    def _training_rows(self, numbers: np.ndarray) -> Rows:
        """Return the columns of at least one training row."""
        columns, references = self._files.read(numbers)
        return self.network.select_references(columns, references)

    def _pad(self, name: str, array: np.ndarray, rows: int, width: int) -> np.ndarray:
        """Pad with empty rows, and axes whose size depends on the rows to at least ``width``.

        A longer axis, of texts that are changed or segmented again, gets the next bound of a
        bucket.
        """
        sizes = [rows, *array.shape[1:]]
        for axis in self.network.variable_axes[name]:
            sizes[axis] = max(sizes[axis], width)
            if width < sizes[axis] <= self.buckets.bounds[-1] and self.fixed_shapes:
                bounds = self.buckets.bounds
                sizes[axis] = int(bounds[np.searchsorted(bounds, sizes[axis])])
        padding = [(0, size - old) for size, old in zip(sizes, array.shape, strict=True)]
        return np.pad(array, padding)
