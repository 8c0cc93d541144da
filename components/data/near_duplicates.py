"""Near duplicates of texts, found by MinHash over shingles of four characters.

The method is that of Broder 1997, "On the resemblance and containment of documents": every training
row is looked up in an index of the small splits. Candidates are measured, so that every hit is
correct; one in a thousand of the rows at the limit of similarity is missed. Of many similar texts,
such as those of a template, only the most similar candidates are measured.
"""

import copy
import functools
import heapq
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from rensa import RMinHash, RMinHashLSH
from typing_extensions import Self

from regard.components.data.target_overlap import hash64

SHINGLE = 4
MAX_MEASURED = 50  # texts that a training row is compared with
EXACT = math.inf
_MISSED = 0.001
_MAX_HASHES = 128  # more hashes separate texts better, but cost more
_SEED = 1
_CACHED_TEXTS = 1000

# By row of another split: the similarity of the most similar training row, and its reference.
Hits = dict[int, tuple[float, int]]


def similarity(first: str, second: str) -> float:
    """Return Jaccard's coefficient of the shingles of two texts; case and spaces do not count."""
    return _jaccard(set(_shingles(first)), set(_shingles(second)))


def sample_rows(rows: Iterable[tuple[int, str]], limit: int) -> list[tuple[int, str]]:
    """Return the rows with the lowest hashes of their texts, in the order of their references.

    So the sample does not depend on the order of the rows, and memory holds no more than it.
    """
    keyed = ((hash64(text.encode("utf-8", "replace")), ref, text) for ref, text in rows)
    return sorted((ref, text) for _, ref, text in heapq.nsmallest(limit, keyed))


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
            self._digests[start : start + batch] = [value.digest() for value in hashes]
        self._shingles_of = functools.lru_cache(_CACHED_TEXTS)(self._shingles_at)
        self._pending: list[tuple[int, str]] = []
        self._hits: Hits = {}
        self.capped = 0

    def search(self) -> Self:
        """Return a search for other training rows in the same index, with hits of its own."""
        new = copy.copy(self)
        new._pending, new._hits, new.capped = [], {}, 0
        return new

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
        for ref, other, value in self.matches(self._pending):
            update_hit(self._hits, other, (value, ref))
        self._pending = []

    def matches(self, rows: Sequence[tuple[int, str]]) -> Iterator[tuple[int, int, float]]:
        """Yield the references of a row and of a similar one of the index, and the similarity.

        Args:
            rows: reference and text of training rows; a few hundred at once are fastest.
        """
        hashes = self._min_hashes([text for _, text in rows])
        candidates = self._index.query_all(hashes)
        for (ref, text), min_hash, similar in zip(rows, hashes, candidates, strict=True):
            for other in self._refs.get(text, ()):
                yield ref, other, EXACT
            if not similar:
                continue
            shingles = set(_shingles(text))
            for index in self._best_candidates(min_hash, similar):
                value = _jaccard(shingles, self._shingles_of(index))
                if value >= self._min_similarity and self._texts[index] != text:
                    for other in self._refs[self._texts[index]]:
                        yield ref, other, value

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


def _jaccard(first: set[str], second: set[str]) -> float:
    both = len(first & second)
    return both / (len(first) + len(second) - both)


def _shingles(text: str) -> list[str]:
    tag, _, text = text.rpartition("\0")
    plain = " ".join(text.casefold().split())
    return [tag + plain[i : i + SHINGLE] for i in range(max(1, len(plain) - SHINGLE + 1))]


def _bands(min_similarity: float) -> tuple[int, int]:
    """Return the bands and the hashes of each: the most that miss hardly any similar pair."""
    for each in range(16, 0, -1):
        bands = math.ceil(math.log(_MISSED) / math.log1p(-(min(min_similarity, 0.999) ** each)))
        if bands * each <= _MAX_HASHES:
            return bands, each
    raise ValueError(f"similarity too low to be found: {min_similarity}")


def update_hit(hits: Hits, other: int, hit: tuple[float, int]) -> None:
    """Keep the more similar hit, and of equal ones the first of the corpus."""
    best = hits.get(other)
    if best is None or (-hit[0], hit[1]) < (-best[0], best[1]):
        hits[other] = hit
