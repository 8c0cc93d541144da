"""Rows that repeat others: exact and near duplicates within and between splits.

Exact duplicates are found by hashes. Rows meet in buckets of a hash, as packed arrays of 16 bytes
per hash: memory holds one bucket at a time. Near duplicates are found by
``regard.components.data.near_duplicates``.
"""

from array import array
from collections.abc import Iterable, Iterator
from typing import Literal, get_args

import numpy as np

from regard.components.data.near_duplicates import EXACT, Hits, update_hit
from regard.components.example_validator.shard_rows import CheckCounts

BUCKETS = 64
# A row and a hash of it.
_PACKED = np.dtype([("ref", "u8"), ("key", "u8")])
# A reference of another split, the first equal one of train, and their hash.
_OVERLAP = np.dtype([("ref", "u8"), ("other", "u8"), ("key", "u8")])

# What is hashed: all features of a row, the model's inputs, or one reference.
Kind = Literal["rows", "inputs", "references"]
Bucket = tuple[Kind, int]
Packed = tuple[Bucket, tuple[bool, bytes]]


class HashPacker:
    """Collects hashes of rows, and yields them by bucket.

    Args:
        is_train: whether the rows are of the training split.
    """

    def __init__(self, is_train: bool):
        self._is_train = is_train
        # The references of rows, each followed by a hash.
        self._rows: dict[Kind, array[int]] = {kind: array("Q") for kind in get_args(Kind)}

    def add(self, ref: int, kind: Kind, key: int) -> None:
        """Add a hash of a row."""
        self._rows[kind].extend((ref, key))

    def packed(self) -> Iterator[Packed]:
        """Yield all hashes as ``((kind, bucket), (is_train, packed hashes))``."""
        for kind, numbers in self._rows.items():
            rows = np.frombuffer(numbers.tobytes(), _PACKED)
            if self._is_train and kind != "rows":
                # The first of equal inputs or references is enough.
                rows = rows[np.unique(rows["key"], return_index=True)[1]]
            buckets = rows["key"] % BUCKETS
            for bucket in np.unique(buckets):
                yield (kind, int(bucket)), (self._is_train, rows[buckets == bucket].tobytes())


def find_duplicates(bucket: Bucket, packed: Iterable[tuple[bool, bytes]]) -> CheckCounts:
    """Return the ``duplicates``, ``overlap`` or ``overlaps`` of one bucket of hashes."""
    train_parts, other_parts = [np.empty(0, _PACKED)], [np.empty(0, _PACKED)]
    for is_train, content in packed:
        parts = train_parts if is_train else other_parts
        parts.append(np.frombuffer(content, _PACKED))
    train, rest = np.concatenate(train_parts), np.concatenate(other_parts)
    # The first row of the corpus is the original.
    train, rest = train[np.argsort(train["ref"])], rest[np.argsort(rest["ref"])]
    keys, first, inverse = np.unique(train["key"], return_index=True, return_inverse=True)
    counts = CheckCounts()
    if bucket[0] == "rows":
        original = first[inverse]
        for i in np.flatnonzero(original != np.arange(len(train))):
            counts.add("duplicates", int(train["ref"][i]), int(train["ref"][original[i]]))
        return counts
    rest = rest[np.isin(rest["key"], keys)]
    others = train["ref"][first[np.searchsorted(keys, rest["key"])]]
    if bucket[0] == "references":
        pairs = zip(rest["ref"], others, rest["key"], strict=True)
        return CheckCounts(overlaps=np.array(list(pairs), _OVERLAP).tobytes())
    for ref, other in zip(rest["ref"], others, strict=True):
        counts.add("overlap", int(ref), int(other))
    return counts


def count_target_overlap(counts: CheckCounts) -> list[int]:
    """Count each row with an overlapping reference once, as ``target_overlap``.

    Returns:
        The hashes of these references.
    """
    overlaps = np.sort(np.frombuffer(counts.overlaps, _OVERLAP), order=("ref", "other"))
    for i in np.unique(overlaps["ref"], return_index=True)[1]:
        counts.add("target_overlap", int(overlaps["ref"][i]), int(overlaps["other"][i]))
    return [int(key) for key in np.unique(overlaps["key"])]


def count_near_overlap(parts: Iterable[Hits]) -> CheckCounts:
    """Count the best hits of all shards as ``near_overlap``; exact copies belong to ``overlap``."""
    merged: Hits = {}
    for part in parts:
        for other, hit in part.items():
            update_hit(merged, other, hit)
    counts = CheckCounts()
    for other, (value, ref) in sorted(merged.items()):
        if value != EXACT:
            counts.add("near_overlap", other, ref)
    return counts
