"""Counts the words of the training split, of which there may be more than memory has room for.

Counts meet in buckets of the words' hash, a few large elements a shard.
"""

from __future__ import annotations

import heapq
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from components.profiles import KEPT, words

BUCKETS = 16
Key = tuple[str, int]


class WordCounter:
    """Counts the words of features, and gives the counts out by bucket.

    Args:
        features: their names.
        limit: so many different words of a feature are held at once.
    """

    def __init__(self, features: Sequence[str], limit: int = 1 << 18):
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in features}
        self._limit = limit

    def add(self, feature: str, text: str) -> Iterator[tuple[Key, dict[str, int]]]:
        """Counts the words of a text; gives out counts where there are many."""
        counts = self._counts[feature]
        counts.update(words(text))
        if len(counts) >= self._limit:
            yield from self._give(feature)

    def flush(self) -> Iterator[tuple[Key, dict[str, int]]]:
        """Gives out what is left, as ((feature, bucket), counts); every feature at least once."""
        for feature in self._counts:
            yield from self._give(feature)

    def _give(self, feature: str) -> Iterator[tuple[Key, dict[str, int]]]:
        buckets: dict[int, dict[str, int]] = {0: {}}
        for word, count in self._counts[feature].items():
            buckets.setdefault(zlib.crc32(word.encode()) % BUCKETS, {})[word] = count
        self._counts[feature] = Counter()
        for bucket, counts in buckets.items():
            yield (feature, bucket), counts


def summed(key: Key, parts: Iterable[dict[str, int]]) -> tuple[str, dict[str, Any]]:
    """The words of one bucket of a feature, from all shards."""
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part)
    return key[0], {
        "total": counts.total(),
        "distinct": len(counts),
        "once": list(counts.values()).count(1),
        "words": _frequent(counts.items()),
    }


def joined(feature: str, buckets: Iterable[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """The words of a feature as its profile has them, from all its buckets."""
    found = list(buckets)
    whole: dict[str, Any] = {
        key: sum(bucket[key] for bucket in found) for key in ("total", "distinct", "once")
    }
    whole["words"] = _frequent(item for bucket in found for item in bucket["words"].items())
    whole["complete"] = len(whole["words"]) == whole["distinct"]
    return feature, whole


def _frequent(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    # By the alphabet where they are as frequent: the same text always has the same profile.
    return dict(heapq.nsmallest(KEPT, counts, key=lambda item: (-item[1], item[0])))
