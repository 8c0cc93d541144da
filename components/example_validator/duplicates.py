"""Rows that repeat others: exact and near duplicates within and between splits.

Exact duplicates are found by hashes. Rows meet in buckets of a hash, as packed arrays of 16 bytes
per hash: memory holds one bucket at a time, and Beam handles a few large
elements instead of one for each row.

Near duplicates are found by MinHash (Broder 1997, "On the resemblance and containment of
documents") over shingles of four characters: every training row is looked up in an index of the
small splits. Candidates are measured, so that every hit is correct; one in a thousand of the rows
at the limit of similarity is missed. Of many similar texts, such as those of a template, only the
most similar candidates are measured.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from rensa import RMinHash, RMinHashLSH

from regard.components.data.split_assignment import canonical
from regard.components.data.target_overlap import hash64
from regard.components.data.text_analysis import normalize
from regard.components.example_validator.shard_rows import CheckCounts, Image

BUCKETS = 64
SHINGLE = 4
MAX_MEASURED = 50  # texts that a training row is compared with
# A row and a hash of it.
_PACKED = np.dtype([("ref", "<u8"), ("key", "<u8")])
# A reference of another split, the first equal one of train, and their hash.
_OVERLAP = np.dtype([("ref", "<u8"), ("other", "<u8"), ("key", "<u8")])
_MISSED = 0.001
_MAX_HASHES = 128  # more hashes separate texts better, but cost more
_SEED = 1
_EXACT = math.inf
_CACHED_TEXTS = 1000

# What is hashed: all features of a row, the model's inputs, or one reference.
Kind = Literal["rows", "inputs", "references"]
Bucket = tuple[Kind, int]
Packed = tuple[Bucket, tuple[bool, bytes]]
# By row of another split: the similarity of the most similar training row, and its reference.
Hits = dict[int, tuple[float, int]]


def hash_values(features: Sequence[Sequence[Any]]) -> int:
    """Return 64 bits that stand for the values of several features."""
    contents = list(map(_value_bytes, features))
    # The lengths separate the contents.
    return hash64(b"".join([b"%d:%b" % (len(part), part) for part in contents]))


def _value_bytes(values: Sequence[Any]) -> bytes:
    """Return bytes that are the same for the same values of a feature."""
    if values and isinstance(values[0], Image):
        return b"".join(image.content for image in values)
    return (canonical(list(values)) or "").encode("utf-8")


class HashPacker:
    """Collects hashes of rows and yields them by bucket.

    Args:
        is_train: whether the rows are of the training split.
        limit: the number of hashes of a kind to collect at most.
    """

    def __init__(self, is_train: bool, limit: int = 1 << 18):
        self._is_train = is_train
        self._limit = limit
        self._rows: dict[Kind, list[tuple[int, int]]] = {kind: [] for kind in get_args(Kind)}

    def add(self, ref: int, kind: Kind, key: int) -> Iterator[Packed]:
        """Add a hash of a row; yield packed hashes if the limit is reached."""
        self._rows[kind].append((ref, key))
        if len(self._rows[kind]) == self._limit:
            yield from self._flush(kind)

    def flush(self) -> Iterator[Packed]:
        """Yield the remaining hashes as ``((kind, bucket), (is_train, packed hashes))``."""
        for kind in self._rows:
            yield from self._flush(kind)

    def _flush(self, kind: Kind) -> Iterator[Packed]:
        rows = np.array(self._rows[kind], _PACKED)
        self._rows[kind] = []
        if self._is_train and kind != "rows":
            # The first of equal inputs or references is enough.
            rows = rows[np.unique(rows["key"], return_index=True)[1]]
        buckets = rows["key"] % BUCKETS
        for bucket in np.unique(buckets):
            yield (kind, int(bucket)), (self._is_train, rows[buckets == bucket].tobytes())


def find_duplicates(bucket: Bucket, packed: Iterable[tuple[bool, bytes]]) -> CheckCounts:
    """Return the ``duplicates``, ``overlap`` or ``overlaps`` of one bucket of hashes."""
    parts = {True: [np.empty(0, _PACKED)], False: [np.empty(0, _PACKED)]}
    for is_train, content in packed:
        parts[is_train].append(np.frombuffer(content, _PACKED))
    train, rest = (np.concatenate(parts[is_train]) for is_train in (True, False))
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


def joined_inputs(inputs: Iterable[Sequence[str]]) -> str:
    """Return the texts of a row's inputs as one normalised text."""
    return "\n".join([normalize(text) for texts in inputs for text in texts])


def similarity(one: str, other: str) -> float:
    """Return Jaccard's coefficient of the shingles of two texts; case and spaces do not count."""
    return _jaccard(set(_shingles(one)), set(_shingles(other)))


class NearDuplicateIndex:
    """Finds the most similar training row of each row of the other splits.

    Args:
        rows: reference and text of each row of the other splits.
        min_similarity: the similarity of near duplicates.
        batch: the number of training rows to look up at once.

    Attributes:
        capped: how many training rows had more than ``MAX_MEASURED`` candidates.
    """

    def __init__(self, rows: Iterable[tuple[int, str]], min_similarity: float, batch: int = 1000):
        self._refs: dict[str, list[int]] = {}
        for ref, text in rows:
            self._refs.setdefault(text, []).append(ref)
        self._texts = list(self._refs)
        self._min_similarity = min_similarity
        self._batch = batch
        bands, hashes_per_band = _bands(min_similarity)
        self._hashes = bands * hashes_per_band
        # Four standard errors lower, so that hardly any text is estimated as too different.
        error = math.sqrt(min_similarity * (1 - min_similarity) / self._hashes)
        self._min_estimate = min_similarity - 4 * error
        self._index = RMinHashLSH(min_similarity, self._hashes, bands)
        self._digests = np.zeros((len(self._texts), self._hashes), np.uint32)
        for start in range(0, len(self._texts), batch):
            hashes = self._min_hashes(self._texts[start : start + batch])
            self._index.insert_many(hashes, start)
            self._digests[start : start + batch] = [one.digest() for one in hashes]
        self._shingles_of = functools.lru_cache(_CACHED_TEXTS)(self._shingles_at)
        self._pending: list[tuple[int, str]] = []
        self._hits: Hits = {}
        self.capped = 0

    def add(self, ref: int, text: str) -> None:
        """Look up a training row, at once or with a later one."""
        self._pending.append((ref, text))
        if len(self._pending) == self._batch:
            self._look_up()

    def hits(self) -> Hits:
        """Return the hits of all rows; an exact copy has infinite similarity."""
        self._look_up()
        return self._hits

    def _look_up(self) -> None:
        hashes = self._min_hashes([text for _, text in self._pending])
        candidates = self._index.query_all(hashes)
        for (ref, text), min_hash, matches in zip(self._pending, hashes, candidates, strict=True):
            for other in self._refs.get(text, ()):
                _update_hit(self._hits, other, (_EXACT, ref))
            if not matches:
                continue
            shingles = set(_shingles(text))
            for index in self._best_candidates(min_hash, matches):
                value = _jaccard(shingles, self._shingles_of(index))
                if value >= self._min_similarity and self._texts[index] != text:
                    for other in self._refs[self._texts[index]]:
                        _update_hit(self._hits, other, (value, ref))
        self._pending = []

    def _best_candidates(self, min_hash: RMinHash, candidates: Sequence[int]) -> Sequence[int]:
        """Return the candidates that may be similar enough, of too many the most similar ones."""
        indices = np.sort(np.array(candidates))
        digest = np.array(min_hash.digest(), np.uint32)
        estimates = (self._digests[indices] == digest).mean(axis=1)
        possible = estimates >= self._min_estimate
        indices, estimates = indices[possible], estimates[possible]
        if len(indices) > MAX_MEASURED:
            self.capped += 1
            indices = indices[np.argsort(-estimates, kind="stable")[:MAX_MEASURED]]
        return indices.tolist()

    def _shingles_at(self, index: int) -> set[str]:
        return set(_shingles(self._texts[index]))

    def _min_hashes(self, texts: Sequence[str]) -> list[RMinHash]:
        return RMinHash.from_token_sets(list(map(_shingles, texts)), self._hashes, _SEED)


def merge_hits(parts: Iterable[Hits]) -> Hits:
    """Return the best hits of all shards."""
    merged: Hits = {}
    for part in parts:
        for other, hit in part.items():
            _update_hit(merged, other, hit)
    return merged


def count_near_overlap(hits: Mapping[int, tuple[float, int]]) -> CheckCounts:
    """Count the hits as ``near_overlap``; exact copies belong to ``overlap``."""
    counts = CheckCounts()
    for other, (value, ref) in sorted(hits.items()):
        if value != _EXACT:
            counts.add("near_overlap", other, ref)
    return counts


def _update_hit(hits: Hits, other: int, hit: tuple[float, int]) -> None:
    """Keep the more similar hit, and of equal ones the first of the corpus."""
    best = hits.get(other)
    if best is None or (-hit[0], hit[1]) < (-best[0], best[1]):
        hits[other] = hit


def _jaccard(one: set[str], other: set[str]) -> float:
    both = len(one & other)
    return both / (len(one) + len(other) - both)


def _shingles(text: str) -> list[str]:
    plain = " ".join(text.casefold().split())
    return [plain[i : i + SHINGLE] for i in range(max(1, len(plain) - SHINGLE + 1))]


def _bands(min_similarity: float) -> tuple[int, int]:
    """Return the bands and the hashes of each: the most that miss hardly any similar pair."""
    for each in range(16, 0, -1):
        bands = math.ceil(math.log(_MISSED) / math.log1p(-(min(min_similarity, 0.999) ** each)))
        if bands * each <= _MAX_HASHES:
            return bands, each
    raise ValueError(f"similarity too low to be found: {min_similarity}")
