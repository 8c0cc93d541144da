import random
from collections import defaultdict

import pytest

from regard.components.data.target_overlap import text_hash
from regard.components.example_validator import duplicates
from regard.components.example_validator.duplicates import (
    MAX_MEASURED,
    HashPacker,
    NearDuplicateIndex,
    _jaccard,
    _shingles,
    count_near_overlap,
    count_target_overlap,
    find_duplicates,
    hash_values,
    merge_hits,
    similarity,
)
from regard.components.example_validator.shard_rows import CheckCounts, Image, row_reference


def find(train, rest, keys, limit=1 << 18):
    """The counts of all buckets of the rows of two shards, in any order.

    ``keys`` returns the kinds and hashes of a row.
    """
    buckets = defaultdict(list)
    for shard, rows in enumerate((train, rest)):
        packer = HashPacker(shard == 0, limit)
        packed = [
            part
            for i, row in enumerate(rows)
            for kind, number in keys(row)
            for part in packer.add(row_reference(shard, i), kind, number)
        ]
        for bucket, part in [*packed, *packer.flush()]:
            buckets[bucket].append(part)
    for parts in buckets.values():
        random.Random(1).shuffle(parts)
    return CheckCounts.total(find_duplicates(*parts) for parts in buckets.items())


def row_duplicates(train, rest, limit=1 << 18):
    def keys(row):
        values = [[text] for text in row]
        return ("rows", hash_values(values)), ("inputs", hash_values(values[:1]))

    return find(train, rest, keys, limit)


def test_duplicates():
    train = [("a", "x"), ("b", "y"), ("a", "x"), ("a", "other"), ("a", "x")]
    counts = row_duplicates(train, [])
    assert counts.counts == {"duplicates": {0: 2}}
    assert counts.examples["duplicates"] == [(2, 0), (4, 0)]


def test_sides_are_separate():
    assert row_duplicates([("ab", "c"), ("a", "bc")], []).counts == {}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ([" cafe\u0301"], ["caf\u00e9"], True),
        (["a", "b"], ["b", "a"], False),
        (["ab"], ["a", "b"], False),
        (["ab"], ["ab", ""], False),
        ([Image("a.png", b"x")], [Image("b.png", b"x")], True),
        ([Image("a.png", b"x")], [Image("a.png", b"y")], False),
        ([0.5, 1.0], [0.5, 1.0], True),
        ([0.5, 1.0], [1.0, 0.5], False),
        ([3], [3, 0], False),
        ([], [], True),
    ],
)
def test_hash_values(one, other, same):
    assert (hash_values([one]) == hash_values([other])) is same


def test_overlap():
    counts = row_duplicates(
        [("a", "x"), ("b", "y")], [("c", "x"), ("b", "z"), (" b ", "z"), ("b", "y")]
    )
    assert counts.counts == {"overlap": {1: 3}}
    assert counts.examples["overlap"][0] == (row_reference(1, 1), 1)


def test_duplicates_within_test_do_not_count():
    assert row_duplicates([("a", "x")], [("b", "y"), ("b", "y")]).counts == {}


def test_packet_size_does_not_matter():
    draw = random.Random(7)
    train = [(str(draw.randrange(300)), "x") for _ in range(1000)]
    rest = [(str(draw.randrange(400)), "x") for _ in range(100)]
    whole = row_duplicates(train, rest)
    assert row_duplicates(train, rest, limit=37) == whole
    assert whole.counts["duplicates"][0] == 1000 - len(set(train))
    assert whole.counts["overlap"][1] == sum(row in set(train) for row in rest)


@pytest.mark.parametrize("limit", [1 << 18, 2])
def test_target_overlap_counts_rows_once(limit):
    train = [["yes"], ["no"], ["yes"], ["cafe\u0301", "maybe"]]
    rest = [["perhaps"], ["maybe", "other", " no"], ["Yes"], ["caf\u00e9"]]
    counts = find(train, rest, lambda row: [("references", text_hash(text)) for text in row], limit)
    hashes = count_target_overlap(counts)
    assert counts.counts == {"target_overlap": {1: 2}}
    row = row_reference(1, 1)
    assert counts.examples["target_overlap"] == [(row, 1), (row_reference(1, 3), 3)]
    assert hashes == sorted(text_hash(text) for text in ("no", "maybe", "caf\u00e9"))


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
    counts = count_near_overlap(hits)
    assert counts.counts == {"near_overlap": {1: 1}}
    assert counts.examples["near_overlap"] == [(row_reference(1, 1), 2)]


def test_exact_copies_belong_to_overlap():
    text = "A blond girl sleeps on a couch."
    hits = [near_hits([text], [text]), near_hits([text + "!"], [text])]
    assert count_near_overlap(merge_hits(hits)).counts == {}
    assert count_near_overlap(merge_hits(reversed(hits))).counts == {}
    assert count_near_overlap(hits[1]).counts == {"near_overlap": {1: 1}}


@pytest.mark.parametrize("min_similarity", [0.5, 0.7, 0.8, 0.9, 1.0])
def test_near_duplicates_are_those_of_all_pairs(min_similarity):
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
    expected = {
        row_reference(1, i)
        for i, text in enumerate(others)
        if any(_jaccard({*_shingles(text)}, other) >= min_similarity for other in shingles)
    }
    hits = near_hits(train, others, min_similarity, batch=64)
    assert set(hits) <= expected
    assert len(hits) >= 0.99 * len(expected) > 100


def test_number_of_measured_candidates_is_limited(monkeypatch):
    others = [f"Room number {i:04d} on floor {i % 9} is free from nine to ten." for i in range(900)]
    measured = []
    monkeypatch.setattr(
        duplicates, "_jaccard", lambda *sets: measured.append(sets) or _jaccard(*sets)
    )
    index = NearDuplicateIndex(list(enumerate(others)), 0.7)
    for i in range(20):
        index.add(i, others[i].replace("floor", "Floor"))
    hits = index.hits()
    assert index.capped == 20
    assert 0 < len(measured) <= 20 * MAX_MEASURED
    assert [hits[i][0] for i in range(20)] == [1] * 20


def test_first_of_equal_hits():
    one = {5: (0.9, 8)}
    other = {5: (0.9, 3), 6: (0.8, 1)}
    assert merge_hits([one, other]) == merge_hits([other, one]) == {5: (0.9, 3), 6: (0.8, 1)}


def test_nothing_to_compare_with():
    assert near_hits(["a text"], []) == {}
    assert near_hits([], ["a text"]) == {}
