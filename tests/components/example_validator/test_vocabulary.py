from __future__ import annotations

import random
from collections import Counter, defaultdict

import pytest

from components.example_validator import vocabulary
from components.example_validator.vocabulary import WordCounter, joined, summed


def counted(shards, limit=1 << 18):
    """What all buckets give for the texts of several shards, met in any order."""
    met = defaultdict(list)
    for texts in shards:
        counter = WordCounter(["source", "target"], limit)
        parts = [part for text in texts for part in counter.add("source", text)]
        for key, counts in [*parts, *counter.flush()]:
            met[key].append(counts)
    features = defaultdict(list)
    for key, parts in met.items():
        random.Random(3).shuffle(parts)
        feature, content = summed(key, parts)
        features[feature].append(content)
    return dict(joined(*item) for item in features.items())


def test_words_of_all_shards_are_counted():
    found = counted([["a b a", "c"], ["a d"], []])
    assert found["source"] == {
        "total": 6,
        "distinct": 4,
        "once": 3,
        "words": {"a": 3, "b": 1, "c": 1, "d": 1},
        "complete": True,
    }
    assert found["target"] == {
        "total": 0,
        "distinct": 0,
        "once": 0,
        "words": {},
        "complete": True,
    }


@pytest.mark.parametrize("limit", [1 << 18, 20])
def test_the_most_frequent_are_kept_whatever_the_parts(monkeypatch, limit):
    monkeypatch.setattr(vocabulary, "KEPT", 30)
    draw = random.Random(5)
    shards = [
        [" ".join(f"w{draw.randrange(1, 20) ** 2}" for _ in range(9)) for _ in range(40)]
        + [" ".join(f"v{draw.randrange(300)}" for _ in range(5))]
        for _ in range(3)
    ]
    every = Counter(word for texts in shards for text in texts for word in text.split())
    found = counted(shards, limit)["source"]
    ranked = sorted(every.items(), key=lambda item: (-item[1], item[0]))
    assert list(found["words"].items()) == ranked[:30]
    assert found["total"] == every.total()
    assert found["distinct"] == len(every)
    assert found["once"] == sum(count == 1 for count in every.values())
    assert not found["complete"]
