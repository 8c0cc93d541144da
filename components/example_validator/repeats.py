"""Duplicates in the training split, and inputs and references of other splits that are in it.

Rows meet in buckets of a hash, as packed arrays of 24 bytes a row and 16 a reference: a bucket is
the most that is in memory at once, and Beam handles a few large elements instead of one a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from components.example_validator.rows import Image
from components.example_validator.tally import Tally
from components.normal_form import normal
from components.seen import digest

BUCKETS = 64
# What of a row meets what of others: the first hash decides where.
KINDS = {"rows": ("inputs", "row"), "references": ("reference",)}
Bucket = tuple[str, int]
# A reference of another split, the first one of train that is the same, and what both are.
_SEEN = np.dtype([("ref", "<u8"), ("other", "<u8"), ("key", "<u8")])


def content(values: Sequence[Any]) -> bytes:
    """What the values of a feature are compared by: bytes that are the same for the same values."""
    if not values:
        return b""
    if isinstance(values[0], str):
        return b"\0".join(normal(text).encode("utf-8") for text in values)
    if isinstance(values[0], Image):
        return b"".join(image.content for image in values)
    return np.asarray(values, "<i8" if isinstance(values[0], int) else "<f4").tobytes()


def hashed(contents: Sequence[bytes]) -> int:
    """64 bits that stand for the contents of several features."""
    # With their lengths, so that they do not run together.
    return digest(b"".join([b"%d:%b" % (len(part), part) for part in contents]))


class Packer:
    """Collects hashes of rows and gives them out by bucket.

    Args:
        train: whether the rows are of the training split.
        kind: one of ``KINDS``.
        limit: how many are collected at most.
    """

    def __init__(self, train: bool, kind: str, limit: int = 1 << 18):
        self._train = train
        self._kind = kind
        self._limit = limit
        self._rows: list[tuple[int, ...]] = []

    def add(self, ref: int, *hashes: int) -> Iterator[tuple[Bucket, tuple[bool, bytes]]]:
        """Takes what the kind has of one row; gives out packed rows where there are many.

        Args:
            ref: the row's reference.
            hashes: of ``rows`` those of the model's inputs and of all features, of ``references``
                that of one of them.
        """
        self._rows.append((ref, *hashes))
        if len(self._rows) == self._limit:
            yield from self.flush()

    def flush(self) -> Iterator[tuple[Bucket, tuple[bool, bytes]]]:
        """Gives out what is left, as (bucket, (train, packed rows))."""
        rows = np.array(self._rows, _packed(self._kind))
        self._rows = []
        if self._train and self._kind == "references":
            # However often all say "yes", one of them is enough: the first.
            rows = rows[np.unique(rows["reference"], return_index=True)[1]]
        buckets = rows[KINDS[self._kind][0]] % BUCKETS
        for bucket in np.unique(buckets):
            yield (self._kind, int(bucket)), (self._train, rows[buckets == bucket].tobytes())


def compare(bucket: Bucket, packed: Iterable[tuple[bool, bytes]]) -> Tally:
    """Finds what is repeated in one bucket: ``duplicates`` and ``overlap``, or what is ``seen``."""
    kind = _packed(bucket[0])
    parts: dict[bool, list[np.ndarray]] = {True: [], False: []}
    for is_train, content in packed:
        parts[is_train].append(np.frombuffer(content, kind))
    train, rest = (_joined(parts[side], kind) for side in (True, False))
    return _seen(train, rest) if bucket[0] == "references" else _repeated(train, rest)


def count_seen(tally: Tally) -> list[int]:
    """Counts each row of which a reference was ``seen`` once, as ``target_overlap``.

    Returns:
        What was seen, each key once.
    """
    seen = np.sort(np.frombuffer(tally.seen, _SEEN), order=("ref", "other"))
    for i in np.unique(seen["ref"], return_index=True)[1]:
        tally.add("target_overlap", int(seen["ref"][i]), int(seen["other"][i]))
    return [int(key) for key in np.unique(seen["key"])]


def _packed(kind: str) -> np.dtype:
    return np.dtype([(name, "<u8") for name in ("ref", *KINDS[kind])])


def _repeated(train: np.ndarray, rest: np.ndarray) -> Tally:
    tally = Tally()
    _, first, which = np.unique(train["row"], return_index=True, return_inverse=True)
    original = first[which]
    for i in map(int, np.flatnonzero(original != np.arange(len(train)))):
        tally.add("duplicates", int(train["ref"][i]), int(train["ref"][original[i]]))
    for i, at in _in_train(rest["inputs"], train["inputs"]):
        tally.add("overlap", int(rest["ref"][i]), int(train["ref"][at]))
    return tally


def _seen(train: np.ndarray, rest: np.ndarray) -> Tally:
    found = [
        (rest["ref"][i], train["ref"][at], rest["reference"][i])
        for i, at in _in_train(rest["reference"], train["reference"])
    ]
    return Tally(seen=np.array(found, _SEEN).tobytes())


def _in_train(rest: np.ndarray, train: np.ndarray) -> Iterator[tuple[int, int]]:
    """Which of the rest are in train too, each with the first place there."""
    known, first = np.unique(train, return_index=True)
    for i in np.flatnonzero(np.isin(rest, known)):
        yield int(i), int(first[np.searchsorted(known, rest[i])])


def _joined(parts: list[np.ndarray], kind: np.dtype) -> np.ndarray:
    rows = np.concatenate(parts) if parts else np.empty(0, kind)
    return rows[np.argsort(rows["ref"])]  # the earliest row is the original, whoever came first
