"""Duplicates in the training split, and inputs and answers of other splits that are in it.

Rows meet in buckets of a hash, as packed arrays of some 20 bytes a row: a bucket is the most that
is in memory at once, and Beam handles a few large elements instead of one a row.
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
# What of a row meets what of others: the first hash decides where.
KINDS = {"rows": ("inputs", "row"), "answers": ("answer",)}
Bucket = tuple[str, int]


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
    """64 bits that stand for the contents of several features.

    A wrong hit among ten million rows has a chance of one in 400,000.
    """
    # With their lengths, so that they do not run together.
    whole = b"".join([b"%d:%b" % (len(part), part) for part in contents])
    return int.from_bytes(hashlib.blake2b(whole, digest_size=8).digest(), "little")


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
            hashes: of ``rows`` those of the model's inputs and of all features, of ``answers``
                that of one answer.
        """
        self._rows.append((ref, *hashes))
        if len(self._rows) == self._limit:
            yield from self.flush()

    def flush(self) -> Iterator[tuple[Bucket, tuple[bool, bytes]]]:
        """Gives out what is left, as (bucket, (train, packed rows))."""
        rows = np.array(self._rows, _packed(self._kind))
        self._rows = []
        buckets = rows[KINDS[self._kind][0]] % BUCKETS
        for bucket in np.unique(buckets):
            yield (self._kind, int(bucket)), (self._train, rows[buckets == bucket].tobytes())


def compare(bucket: Bucket, packed: Iterable[tuple[bool, bytes]]) -> Tally:
    """Finds what is repeated in one bucket: ``duplicates`` and ``overlap``, or answers ``seen``."""
    kind = _packed(bucket[0])
    parts: dict[bool, list[np.ndarray]] = {True: [], False: []}
    for is_train, content in packed:
        parts[is_train].append(np.frombuffer(content, kind))
    train, rest = (_joined(parts[side], kind) for side in (True, False))
    return _seen(train, rest) if bucket[0] == "answers" else _repeated(train, rest)


def count_seen(tally: Tally) -> None:
    """Counts each row of which an answer was ``seen`` once, as ``target_overlap``."""
    told: set[int] = set()
    for ref, other, _ in sorted(tally.seen):
        if ref not in told:
            told.add(ref)
            tally.add("target_overlap", ref, other)


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
    pairs = _in_train(rest["answer"], train["answer"])
    return Tally(
        seen=[
            (int(rest["ref"][i]), int(train["ref"][at]), int(rest["answer"][i])) for i, at in pairs
        ]
    )


def _in_train(rest: np.ndarray, train: np.ndarray) -> Iterator[tuple[int, int]]:
    """Which of the rest are in train too, each with the first place there."""
    known, first = np.unique(train, return_index=True)
    for i in np.flatnonzero(np.isin(rest, known)):
        yield int(i), int(first[np.searchsorted(known, rest[i])])


def _joined(parts: list[np.ndarray], kind: np.dtype) -> np.ndarray:
    rows = np.concatenate(parts) if parts else np.empty(0, kind)
    return rows[np.argsort(rows["ref"])]  # the earliest row is the original, whoever came first
