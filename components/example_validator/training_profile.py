"""The profile of the training split: its words and lengths.

A training split can have more words than memory has room for. Counts meet in buckets of the words'
hash, of which memory holds one at a time.
"""

import heapq
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypedDict

from regard.components.data.profiles import (
    BOUNDS,
    MAX_WORDS,
    FeatureProfile,
    LengthProfile,
    Profile,
    WordProfile,
    histogram,
)
from regard.components.data.text_analysis import split_words
from regard.components.example_validator.shard_rows import CheckCounts, Shard
from regard.core.features import Feature
from regard.core.kinds import TEXT

BUCKETS = 16
WordBucket = tuple[str, int]


class LengthHistogram(TypedDict):
    """The lengths of a feature by split; see ``LengthProfile``."""

    unit: str | None
    bounds: list[int]
    splits: dict[str, list[int]]


class WordCounter:
    """Counts the words of features and yields the counts by bucket.

    Args:
        features: the names of the features.
        limit: the number of different words of a feature to hold at once.
    """

    def __init__(self, features: Sequence[str], limit: int = 1 << 18):
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in features}
        self._limit = limit

    def add(self, feature: str, text: str) -> Iterator[tuple[WordBucket, dict[str, int]]]:
        """Count the words of a text; yield counts if the limit is reached."""
        counts = self._counts[feature]
        counts.update(split_words(text))
        if len(counts) >= self._limit:
            yield from self._flush(feature)

    def flush(self) -> Iterator[tuple[WordBucket, dict[str, int]]]:
        """Yield the remaining ``((feature, bucket), counts)``, at least one for each feature."""
        for feature in self._counts:
            yield from self._flush(feature)

    def _flush(self, feature: str) -> Iterator[tuple[WordBucket, dict[str, int]]]:
        buckets: dict[int, dict[str, int]] = {0: {}}
        for word, count in self._counts[feature].items():
            buckets.setdefault(zlib.crc32(word.encode()) % BUCKETS, {})[word] = count
        self._counts[feature] = Counter()
        for bucket, counts in buckets.items():
            yield (feature, bucket), counts


def sum_bucket(parts: Iterable[Mapping[str, int]]) -> WordProfile:
    """Return the words of one bucket of a feature, from all shards."""
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part)
    return word_profile(counts)


def word_profile(counts: Counter[str]) -> WordProfile:
    """Return the profile of counted words."""
    return {
        "total": counts.total(),
        "distinct": len(counts),
        "once": list(counts.values()).count(1),
        "words": _most_frequent(counts.items()),
        "complete": len(counts) <= MAX_WORDS,
    }


def join_buckets(buckets: Sequence[WordProfile]) -> WordProfile:
    """Return the words of a feature from all its buckets."""
    words = _most_frequent(item for bucket in buckets for item in bucket["words"].items())
    distinct = sum(bucket["distinct"] for bucket in buckets)
    return {
        "total": sum(bucket["total"] for bucket in buckets),
        "distinct": distinct,
        "once": sum(bucket["once"] for bucket in buckets),
        "words": words,
        "complete": len(words) == distinct,
    }


def _most_frequent(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    # Equally frequent words in alphabetical order: the same text always has the same profile.
    return dict(heapq.nsmallest(MAX_WORDS, counts, key=lambda item: (-item[1], item[0])))


def length_histograms(
    counts: CheckCounts, shards: Sequence[Shard], features: Sequence[Feature]
) -> dict[str, LengthHistogram]:
    """Return the lengths of each feature that has lengths."""
    histograms: dict[str, LengthHistogram] = {}
    for feature in features:
        if feature.name not in counts.lengths:
            continue
        splits: dict[str, list[int]] = {}
        for index, shard_lengths in sorted(counts.lengths[feature.name].items()):
            split = shards[index].split
            sums = splits.setdefault(split, [0] * len(shard_lengths))
            splits[split] = [a + b for a, b in zip(sums, shard_lengths, strict=True)]
        unit, bounds = feature.kind.length_unit(feature), list(BOUNDS)
        histograms[feature.name] = {"unit": unit, "bounds": bounds, "splits": splits}
    return histograms


def text_lengths(counts: Mapping[int, int]) -> LengthHistogram:
    """Return the lengths of a text feature of the training split from their numbers."""
    unit = TEXT.length_unit(Feature("", TEXT))
    return {"unit": unit, "bounds": list(BOUNDS), "splits": {"train": histogram(counts)}}


def train_profile(
    rows: int, words: Mapping[str, WordProfile], lengths: Mapping[str, LengthHistogram]
) -> Profile:
    """Return the profile of the training split, with which later data is compared."""
    features: dict[str, FeatureProfile] = {
        name: {**words.get(name, {}), "lengths": _length_profile(histograms)}  # type: ignore[typeddict-item]
        for name, histograms in lengths.items()
    }
    return {"rows": rows, "features": features}


def _length_profile(lengths: LengthHistogram) -> LengthProfile:
    counts = lengths["splits"].get("train") or [0] * (len(BOUNDS) + 1)
    return {"unit": lengths["unit"], "bounds": list(BOUNDS), "counts": counts}
