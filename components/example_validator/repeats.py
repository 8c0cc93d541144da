"""Duplicates in the training split, and sources of other splits that are in it.

Rows meet in buckets of their source's hash, as packed arrays of 24 bytes a row: a bucket is the
most that is in memory at once, and Beam handles a few large elements instead of one a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from components.corpus_gen.splits import normal
from components.example_validator.tally import Tally

BUCKETS = 64
_ROW = np.dtype([("ref", "<u8"), ("source", "<u8"), ("pair", "<u8")])


class Packer:
    """Collects the hashes of rows and gives them out by bucket."""

    def __init__(self, train: bool, limit: int = 1 << 18):
        self._train = train
        self._limit = limit
        self._rows: list[tuple[int, int, int]] = []

    def add(self, ref: int, row: Sequence[str]) -> Iterator[tuple[int, tuple[bool, bytes]]]:
        """Takes one row; gives out packed rows where there are many."""
        sides = [normal(text).encode("utf-8") for text in row]
        # 64 bits: a wrong hit among ten million rows has a chance of one in 400,000.
        self._rows.append((ref, _hash(sides[0]), _hash(b"\0".join(sides))))
        if len(self._rows) == self._limit:
            yield from self.flush()

    def flush(self) -> Iterator[tuple[int, tuple[bool, bytes]]]:
        """Gives out what is left, as (bucket, (train, packed rows))."""
        rows = np.array(self._rows, _ROW)
        self._rows = []
        buckets = rows["source"] % BUCKETS
        for bucket in np.unique(buckets):
            yield int(bucket), (self._train, rows[buckets == bucket].tobytes())


def compare(packed: Iterable[tuple[bool, bytes]]) -> Tally:
    """Finds the repeated rows of one bucket: ``duplicates`` and ``overlap``."""
    parts: dict[bool, list[np.ndarray]] = {True: [], False: []}
    for is_train, content in packed:
        parts[is_train].append(np.frombuffer(content, _ROW))
    train, rest = (_joined(parts[side]) for side in (True, False))
    tally = Tally()
    _, first, which = np.unique(train["pair"], return_index=True, return_inverse=True)
    original = first[which]
    for i in np.flatnonzero(original != np.arange(len(train))):
        tally.add("duplicates", int(train["ref"][i]), int(train["ref"][original[i]]))
    known, first = np.unique(train["source"], return_index=True)
    for i in np.flatnonzero(np.isin(rest["source"], known)):
        at = first[np.searchsorted(known, rest["source"][i])]
        tally.add("overlap", int(rest["ref"][i]), int(train["ref"][at]))
    return tally


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    rows = np.concatenate(parts) if parts else np.empty(0, _ROW)
    return rows[np.argsort(rows["ref"])]  # the earliest row is the original, whoever came first


def _hash(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")
