"""Duplicates in the training split, and inputs of other splits that are in it.

Rows meet in buckets of their inputs' hash, as packed arrays of 24 bytes a row: a bucket is the
most that is in memory at once, and Beam handles a few large elements instead of one a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from components.corpus_gen.splits import normal
from components.example_validator.rows import Image
from components.example_validator.tally import Tally

BUCKETS = 64
_ROW = np.dtype([("ref", "<u8"), ("inputs", "<u8"), ("row", "<u8")])


def content(values: Sequence[Any]) -> bytes:
    """What the values of a feature are compared by: bytes that are the same for the same values."""
    if not values:
        return b""
    if isinstance(values[0], str):
        return b"\0".join(normal(text).encode("utf-8") for text in values)
    if isinstance(values[0], Image):
        return b"".join(image.content for image in values)
    return np.asarray(values, "<i8" if isinstance(values[0], int) else "<f4").tobytes()


class Packer:
    """Collects the hashes of rows and gives them out by bucket."""

    def __init__(self, train: bool, limit: int = 1 << 18):
        self._train = train
        self._limit = limit
        self._rows: list[tuple[int, int, int]] = []

    def add(
        self, ref: int, inputs: Sequence[bytes], row: Sequence[bytes]
    ) -> Iterator[tuple[int, tuple[bool, bytes]]]:
        """Takes the ``content`` of one row's features; gives out packed rows where there are many.

        Args:
            ref: the row's reference.
            inputs: those features that the model is given.
            row: all of them.
        """
        # 64 bits: a wrong hit among ten million rows has a chance of one in 400,000.
        self._rows.append((ref, _hash(inputs), _hash(row)))
        if len(self._rows) == self._limit:
            yield from self.flush()

    def flush(self) -> Iterator[tuple[int, tuple[bool, bytes]]]:
        """Gives out what is left, as (bucket, (train, packed rows))."""
        rows = np.array(self._rows, _ROW)
        self._rows = []
        buckets = rows["inputs"] % BUCKETS
        for bucket in np.unique(buckets):
            yield int(bucket), (self._train, rows[buckets == bucket].tobytes())


def compare(packed: Iterable[tuple[bool, bytes]]) -> Tally:
    """Finds the repeated rows of one bucket: ``duplicates`` and ``overlap``."""
    parts: dict[bool, list[np.ndarray]] = {True: [], False: []}
    for is_train, content in packed:
        parts[is_train].append(np.frombuffer(content, _ROW))
    train, rest = (_joined(parts[side]) for side in (True, False))
    tally = Tally()
    _, first, which = np.unique(train["row"], return_index=True, return_inverse=True)
    original = first[which]
    for i in np.flatnonzero(original != np.arange(len(train))):
        tally.add("duplicates", int(train["ref"][i]), int(train["ref"][original[i]]))
    known, first = np.unique(train["inputs"], return_index=True)
    for i in np.flatnonzero(np.isin(rest["inputs"], known)):
        at = first[np.searchsorted(known, rest["inputs"][i])]
        tally.add("overlap", int(rest["ref"][i]), int(train["ref"][at]))
    return tally


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    rows = np.concatenate(parts) if parts else np.empty(0, _ROW)
    return rows[np.argsort(rows["ref"])]  # the earliest row is the original, whoever came first


def _hash(contents: Sequence[bytes]) -> int:
    # With their lengths, so that they do not run together.
    whole = b"".join([b"%d:%b" % (len(part), part) for part in contents])
    return int.from_bytes(hashlib.blake2b(whole, digest_size=8).digest(), "little")
