"""Rows of other splits whose input is nearly the same as one of the training split.

MinHash (Broder 1997) over shingles of four characters finds those that may be, by an index of the
small splits that every training row is looked up in; what is found is measured, so that no hit is
wrong. Chance misses one in a thousand of those that are just similar enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from rensa import RMinHash, RMinHashLSH

from components.corpus_gen.splits import normal
from components.example_validator.tally import Tally

SHINGLE = 4
_MISSED = 0.001
_HASHES = 128  # at most; more tell unlike texts apart better, and cost more
_SEED = 1
# By row of another split: how similar the most similar training row is, and its reference.
Hits = dict[int, tuple[float, int]]
_EXACT = math.inf


def text_of(inputs: Iterable[Sequence[str]]) -> str:
    """The texts of a row's inputs as one, in the form in which they count as the same."""
    return "\n".join([normal(text) for texts in inputs for text in texts])


def similarity(one: str, other: str) -> float:
    """Jaccard's coefficient of the shingles of two texts: 0 to 1. Case and spaces do not count."""
    first, second = set(_shingles(one)), set(_shingles(other))
    return len(first & second) / len(first | second)


class Neighbours:
    """Finds the most similar training row of each row of other splits.

    Args:
        rows: reference and text of each row of the other splits.
        least: the similarity from which on two texts are nearly the same.
        batch: training rows that are looked up at once.
    """

    def __init__(self, rows: Iterable[tuple[int, str]], least: float, batch: int = 1000):
        self._rows = list(rows)
        self._least = least
        self._batch = batch
        bands, each = _bands(least)
        self._hashes = bands * each
        self._index = RMinHashLSH(least, self._hashes, bands)
        for start in range(0, len(self._rows), batch):
            texts = [text for _, text in self._rows[start : start + batch]]
            self._index.insert_many(self._hashed(texts), start)
        self._waiting: list[tuple[int, str]] = []
        self._hits: Hits = {}

    def add(self, ref: int, text: str) -> None:
        """Looks a training row up, sooner or later."""
        self._waiting.append((ref, text))
        if len(self._waiting) == self._batch:
            self._look_up()

    def found(self) -> Hits:
        """The hits among all rows that were added; exact copies are infinitely similar."""
        self._look_up()
        return self._hits

    def _look_up(self) -> None:
        candidates = self._index.query_all(self._hashed([text for _, text in self._waiting]))
        for (ref, text), places in zip(self._waiting, candidates, strict=True):
            for place in places:
                there, known = self._rows[place]
                alike = _EXACT if text == known else similarity(text, known)
                if alike >= self._least:
                    _keep(self._hits, there, (alike, ref))
        self._waiting = []

    def _hashed(self, texts: Sequence[str]) -> list[RMinHash]:
        return RMinHash.from_token_sets(list(map(_shingles, texts)), self._hashes, _SEED)


def joined(parts: Iterable[Hits]) -> Hits:
    """The hits of all shards."""
    whole: Hits = {}
    for part in parts:
        for there, hit in part.items():
            _keep(whole, there, hit)
    return whole


def tallied(hits: Mapping[int, tuple[float, int]]) -> Tally:
    """The hits as the findings of ``near_overlap``; exact copies are those of ``overlap``."""
    tally = Tally()
    for there, (alike, ref) in sorted(hits.items()):
        if alike != _EXACT:
            tally.add("near_overlap", there, ref)
    return tally


def _keep(hits: Hits, there: int, hit: tuple[float, int]) -> None:
    """The more similar one stays, and of equals the one that comes first in the corpus."""
    best = hits.get(there)
    if best is None or (-hit[0], hit[1]) < (-best[0], best[1]):
        hits[there] = hit


def _shingles(text: str) -> list[str]:
    plain = " ".join(text.casefold().split())
    return [plain[i : i + SHINGLE] for i in range(max(1, len(plain) - SHINGLE + 1))]


def _bands(least: float) -> tuple[int, int]:
    """Bands, and hashes of each: the most that let hardly any pair of that similarity slip."""
    for each in range(16, 0, -1):
        bands = math.ceil(math.log(_MISSED) / math.log1p(-(min(least, 0.999) ** each)))
        if bands * each <= _HASHES:
            return bands, each
    raise ValueError(f"too little similarity to be found: {least}")
