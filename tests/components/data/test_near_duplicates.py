import random

import pytest

from regard.components.data import near_duplicates
from regard.components.data.near_duplicates import (
    MAX_MEASURED,
    NearDuplicateIndex,
    _jaccard,
    _shingles,
    sample_rows,
    similarity,
)
from regard.components.example_validator.duplicates import count_near_overlap
from regard.components.example_validator.shard_rows import row_reference


def near_hits(train, others, min_similarity=0.8, batch=1000):
    rows = [(row_reference(1, i), text) for i, text in enumerate(others)]
    index = NearDuplicateIndex(rows, min_similarity, batch)
    for i, text in enumerate(train):
        index.add(row_reference(0, i), text)
    return index.hits()


@pytest.mark.parametrize(
    ("one", "other", "value"),
    [
        ("abcde", "abcdf", 1 / 3),
        ("A  dog\tsleeps", "a dog sleeps", 1),
        ("ab", "ab", 1),
        ("ab", "cd", 0),
        ("aaaa", "aaaaaaaa", 1),
        ("他有一个兄弟和两个姐妹。", "我有一个兄弟和两个姐妹。", 8 / 10),
    ],
)
def test_similarity(one, other, value):
    assert similarity(one, other) == pytest.approx(value)


def test_most_similar_row_counts():
    train = [
        "nothing similar",
        "A blond girl sleeps on the couch.",
        "A blond girl sleeps on a couch",
    ]
    hits = near_hits(train, ["Something else.", "A blond girl sleeps on a couch."])
    assert hits == {row_reference(1, 1): (pytest.approx(27 / 28), 2)}
    counts = count_near_overlap([hits])
    assert counts.counts == {"near_overlap": {1: 1}}
    assert counts.examples["near_overlap"] == [(row_reference(1, 1), 2)]


def test_exact_copies_belong_to_overlap():
    text = "A blond girl sleeps on a couch."
    hits = [near_hits([text], [text]), near_hits([text + "!"], [text])]
    assert count_near_overlap(hits).counts == {}
    assert count_near_overlap(reversed(hits)).counts == {}
    assert count_near_overlap(hits[1:]).counts == {"near_overlap": {1: 1}}


@pytest.fixture(scope="module")
def altered():
    """Training texts, and by text that some of them are made from the similarity of the nearest."""
    draw = random.Random(1)
    words = ["dog", "cat", "runs", "sleeps", "over", "under", "the", "green", "table", "quickly"]
    others = [" ".join(draw.choices(words, k=9)) for _ in range(250)]
    train = []
    for text in others * 2:
        parts = text.split()
        for _ in range(draw.randrange(4)):
            parts[draw.randrange(9)] = draw.choice(words)
        train.append(" ".join(parts).capitalize())
    shingles = [{*_shingles(text)} for text in train]
    return train, {
        text: max(_jaccard({*_shingles(text)}, other) for other in shingles) for text in others
    }


@pytest.mark.parametrize("min_similarity", [0.5, 0.8, 1.0])
def test_near_duplicates_are_those_of_all_pairs(altered, min_similarity):
    train, nearest = altered
    expected = {
        row_reference(1, i) for i, value in enumerate(nearest.values()) if value >= min_similarity
    }
    hits = near_hits(train, [*nearest], min_similarity, batch=64)
    assert set(hits) <= expected
    assert len(hits) >= 0.99 * len(expected) > 100


def test_number_of_measured_candidates_is_limited(monkeypatch):
    others = [f"Room number {i:04d} on floor {i % 9} is free from nine to ten." for i in range(900)]
    measured = []
    monkeypatch.setattr(
        near_duplicates, "_jaccard", lambda *sets: measured.append(sets) or _jaccard(*sets)
    )
    index = NearDuplicateIndex(list(enumerate(others)), 0.7)
    for i in range(20):
        index.add(i, others[i].replace("floor", "Floor"))
    hits = index.hits()
    assert index.capped == 20
    assert 0 < len(measured) <= 20 * MAX_MEASURED
    assert [hits[i][0] for i in range(20)] == [1] * 20


def test_nothing_to_compare_with():
    assert near_hits(["a text"], []) == {}
    assert near_hits([], ["a text"]) == {}


def test_sample_depends_on_texts_only():
    rows = [(ref, f"text {ref % 40}") for ref in range(100)]
    sample = sample_rows(rows, 30)
    assert len(sample) == 30
    assert sample == sorted(sample)
    random.Random(1).shuffle(rows)
    assert sample_rows(rows, 30) == sample
    assert sample_rows(rows, 1000) == sorted(rows)


def test_searches_of_one_index_are_separate():
    index = NearDuplicateIndex([(7, "a dog sleeps here")], 0.5)
    one, other = index.search(), index.search()
    one.add(1, "a dog sleeps here now")
    assert set(one.hits()) == {7}
    assert other.hits() == {}
