"""The plan of an epoch: which rows share a batch, and the order of the batches."""

from __future__ import annotations

import dataclasses

import numpy as np

Seed = tuple[int, ...] | None

# The ratio of the bounds of neighbouring buckets: little padding. Where every shape is compiled,
# the larger ratio leaves about ten shapes, up to a length of 100 for example.
GROWTH, COARSE_GROWTH = 1.15, 1.35


@dataclasses.dataclass(frozen=True)
class Buckets:
    """The lengths that share a batch, and the rows that fit into it.

    Attributes:
        bounds: the largest length of each bucket, rising.
        sizes: the rows of a batch of each bucket.
    """

    bounds: np.ndarray
    sizes: np.ndarray

    @classmethod
    def create(cls, batch_tokens: int, max_length: int, growth: float = GROWTH) -> Buckets:
        """Return buckets for sources and targets that have the tokens of a batch together.

        Args:
            batch_tokens: the padded tokens of a batch, of both sides.
            max_length: the largest length.
            growth: the ratio of neighbouring bounds, which differ by at least 2.
        """
        bounds, length = [], 8
        while length < max_length:
            bounds.append(length)
            length = max(length + 2, int(length * growth))
        bounds.append(max_length)
        sizes = [max(1, batch_tokens // (2 * bound)) for bound in bounds]
        return cls(np.array(bounds), np.array(sizes))

    def count_rows(self, lengths: np.ndarray) -> np.ndarray:
        """The number of usable rows in each bucket."""
        usable = lengths[self.usable(lengths)]
        return np.bincount(np.searchsorted(self.bounds, usable), minlength=len(self.bounds))

    def usable(self, lengths: np.ndarray) -> np.ndarray:
        """Whether rows are complete and not too long."""
        return (lengths > 0) & (lengths <= self.bounds[-1])


@dataclasses.dataclass(frozen=True)
class TagSampling:
    """Draws the rows of each tag in proportion to n^(1/temperature), n being their number.

    See Arivazhagan et al. 2019, "Massively Multilingual Neural Machine Translation in the Wild:
    Findings and Challenges", §4.2. The rows of an epoch are as many as without sampling. Of a tag,
    each is drawn equally often, plus or minus one, which depends on the order of the epoch.

    Attributes:
        tags: the number of the tag of each row, ``[rows]``.
        temperature: 1 draws every row once; the higher, the more equal are the tags.
    """

    tags: np.ndarray
    temperature: float

    def counts(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of each tag, and those of it that an epoch draws, ``[tags]``."""
        counts = np.bincount(self.tags[rows])
        weights = counts ** (1 / self.temperature)
        return counts, weights / weights.sum() * len(rows)

    def draw(self, rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Return the rows of an epoch; of each bucket the same number in every epoch.

        Args:
            rows: the numbers of the rows, in random order.
            numbers: the bucket of each row.
        """
        groups = self.tags[rows].astype(np.int64) << 16 | numbers
        order = np.argsort(groups, kind="stable")
        rows, groups = rows[order], groups[order]
        inside = np.arange(len(rows)) - np.searchsorted(groups, groups)
        counts, expected = self.counts(rows)
        rates = expected[self.tags[rows]] / counts[self.tags[rows]]
        # Rounded up, so that no group is left out for good; without errors of float64.
        before, after = np.ceil(inside * rates - 1e-6), np.ceil((inside + 1) * rates - 1e-6)
        return np.repeat(rows, (after - before).astype(np.int64))


class EpochPlan:
    """The batches of one epoch: every usable row is in one of them, unless tags are sampled.

    With a seed, all rows are shuffled before they are divided, and so are the batches.

    Args:
        lengths: the lengths of all rows, ``[rows]``; 0 or less for those that are not used.
        buckets: the ranges of similar lengths.
        seed: the seed of the order; None for the order of the rows, from short ones to long ones.
        sampling: draws the rows of an epoch with a seed; None for all of them once.
    """

    def __init__(
        self, lengths: np.ndarray, buckets: Buckets, seed: Seed, sampling: TagSampling | None = None
    ):
        random = None if seed is None else np.random.default_rng(seed)
        rows = np.flatnonzero(buckets.usable(lengths)).astype(np.min_scalar_type(len(lengths)))
        rows = rows if random is None else random.permutation(rows)
        if sampling is not None and random is not None:
            numbers = np.searchsorted(buckets.bounds, lengths[rows])
            rows = random.permutation(sampling.draw(rows, numbers))
        # NumPy sorts integers of 16 bits in linear time.
        numbers = np.searchsorted(buckets.bounds, lengths[rows]).astype(np.uint16)
        self._rows = rows[np.argsort(numbers, kind="stable")]
        counts = np.bincount(numbers, minlength=len(buckets.bounds))
        batches = -(-counts // buckets.sizes)
        # The number of a batch in its bucket gives its first row.
        inside = np.arange(batches.sum()) - np.repeat(np.cumsum(batches) - batches, batches)
        ends = np.cumsum(counts)
        starts = np.repeat(ends - counts, batches) + inside * np.repeat(buckets.sizes, batches)
        stops = np.minimum(starts + np.repeat(buckets.sizes, batches), np.repeat(ends, batches))
        order = np.arange(len(starts)) if random is None else random.permutation(len(starts))
        self._starts, self._stops = starts[order], stops[order]
        self._buckets = np.repeat(np.arange(len(counts)), batches)[order]

    def __len__(self) -> int:
        return len(self._starts)

    def batch(self, number: int) -> tuple[np.ndarray, int]:
        """Return the rows of a batch, and its bucket."""
        rows = self._rows[self._starts[number] : self._stops[number]]
        return rows.astype(np.int64), int(self._buckets[number])
