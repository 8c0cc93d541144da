"""Rows of other splits whose input is nearly the same as one of the training split.

MinHash (Broder 1997) over shingles of four characters finds those that may be, by an index of the
small splits that every training row is looked up in; what is found is measured, so that no hit is
wrong. Chance misses one in a thousand of those that are just similar enough. Of texts that are all
alike, as those of a template are, only the most promising are measured.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from rensa import RMinHash, RMinHashLSH

from components.example_validator.tally import Tally
from components.normal_form import normal

SHINGLE = 4
_MISSED = 0.001
_HASHES = 128  # at most; more tell unlike texts apart better, and cost more
_SEED = 1
# By row of another split: how similar the most similar training row is, and its reference.
Hits = dict[int, tuple[float, int]]
_EXACT = math.inf
MEASURED = 50  # texts for each training row
_KEPT = 1000  # texts whose shingles are at hand


def text_of(inputs: Iterable[Sequence[str]]) -> str:
    """The texts of a row's inputs as one, in the form in which they count as the same."""
    return "\n".join([normal(text) for texts in inputs for text in texts])


def similarity(one: str, other: str) -> float:
    """Jaccard's coefficient of the shingles of two texts: 0 to 1. Case and spaces do not count."""
    return _jaccard(set(_shingles(one)), set(_shingles(other)))


class Neighbours:
    """Finds the most similar training row of each row of other splits.

    Args:
        rows: reference and text of each row of the other splits.
        least: the similarity from which on two texts are nearly the same.
        batch: training rows that are looked up at once.

    Attributes:
        capped: how many training rows had more than ``MEASURED`` texts to be measured with.
    """

    def __init__(self, rows: Iterable[tuple[int, str]], least: float, batch: int = 1000):
        self._refs: dict[str, list[int]] = {}
        for ref, text in rows:
            self._refs.setdefault(text, []).append(ref)
        self._texts = list(self._refs)
        self._least = least
        self._batch = batch
        bands, each = _bands(least)
        self._hashes = bands * each
        # Four standard errors below, so that hardly any text is taken for less similar than it is.
        self._promising = least - 4 * math.sqrt(least * (1 - least) / self._hashes)
        self._index = RMinHashLSH(least, self._hashes, bands)
        self._digests = np.zeros((len(self._texts), self._hashes), np.uint32)
        for start in range(0, len(self._texts), batch):
            hashed = self._hashed(self._texts[start : start + batch])
            self._index.insert_many(hashed, start)
            self._digests[start : start + batch] = [one.digest() for one in hashed]
        self._set_of = functools.lru_cache(_KEPT)(self._shingles_at)
        self._waiting: list[tuple[int, str]] = []
        self._hits: Hits = {}
        self.capped = 0

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
        hashed = self._hashed([text for _, text in self._waiting])
        candidates = self._index.query_all(hashed)
        for (ref, text), one, places in zip(self._waiting, hashed, candidates, strict=True):
            for there in self._refs.get(text, ()):
                _keep(self._hits, there, (_EXACT, ref))
            if not places:
                continue
            shingles = set(_shingles(text))
            for place in self._most_promising(one, places):
                alike = _jaccard(shingles, self._set_of(place))
                if alike >= self._least and self._texts[place] != text:
                    for there in self._refs[self._texts[place]]:
                        _keep(self._hits, there, (alike, ref))
        self._waiting = []

    def _most_promising(self, one: RMinHash, places: Sequence[int]) -> Sequence[int]:
        """Those of some texts that may be similar enough; the most similar ones of too many."""
        at = np.sort(np.array(places))
        alike = (self._digests[at] == np.array(one.digest(), np.uint32)).mean(axis=1)
        at, alike = at[alike >= self._promising], alike[alike >= self._promising]
        if len(at) > MEASURED:
            self.capped += 1
            at = at[np.argsort(-alike, kind="stable")[:MEASURED]]
        return at.tolist()

    def _shingles_at(self, place: int) -> set[str]:
        return set(_shingles(self._texts[place]))

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


def _jaccard(one: set[str], other: set[str]) -> float:
    both = len(one & other)
    return both / (len(one) + len(other) - both)


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
