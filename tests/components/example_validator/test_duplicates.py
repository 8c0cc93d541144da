import random
from collections import defaultdict

import pytest

from regard.components.data.row_values import hash_values
from regard.components.data.target_overlap import text_hash
from regard.components.example_validator.duplicates import (
    HashPacker,
    count_near_overlap,
    count_target_overlap,
    find_duplicates,
)
from regard.components.example_validator.shard_rows import CheckCounts, row_reference
from regard.core.kinds.image import ImageFile


def find(train, rest, keys):
    """The counts of all buckets of the rows of two shards, each packed in two parts, in any order.

    ``keys`` returns the kinds and hashes of a row.
    """
    buckets = defaultdict(list)
    for shard, rows in enumerate((train, rest)):
        packers = [HashPacker(shard == 0) for _ in range(2)]
        for i, row in enumerate(rows):
            for kind, number in keys(row):
                packers[i % 2].add(row_reference(shard, i), kind, number)
        for packer in packers:
            for bucket, part in packer.packed():
                buckets[bucket].append(part)
    for parts in buckets.values():
        random.Random(1).shuffle(parts)
    return CheckCounts.total(find_duplicates(*parts) for parts in buckets.items())


def row_duplicates(train, rest):
    def keys(row):
        values = [[text] for text in row]
        return ("rows", hash_values(values)), ("inputs", hash_values(values[:1]))

    return find(train, rest, keys)


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
        ([ImageFile("a.png", b"x")], [ImageFile("b.png", b"x")], True),
        ([ImageFile("a.png", b"x")], [ImageFile("a.png", b"y")], False),
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


def test_many_rows():
    draw = random.Random(7)
    train = [(str(draw.randrange(300)), "x") for _ in range(1000)]
    rest = [(str(draw.randrange(400)), "x") for _ in range(100)]
    whole = row_duplicates(train, rest)
    assert whole.counts["duplicates"][0] == 1000 - len(set(train))
    assert whole.counts["overlap"][1] == sum(row in set(train) for row in rest)


def test_target_overlap_counts_rows_once():
    train = [["yes"], ["no"], ["yes"], ["cafe\u0301", "maybe"]]
    rest = [["perhaps"], ["maybe", "other", " no"], ["Yes"], ["caf\u00e9"]]
    counts = find(train, rest, lambda row: [("references", text_hash(text)) for text in row])
    hashes = count_target_overlap(counts)
    assert counts.counts == {"target_overlap": {1: 2}}
    row = row_reference(1, 1)
    assert counts.examples["target_overlap"] == [(row, 1), (row_reference(1, 3), 3)]
    assert hashes == sorted(text_hash(text) for text in ("no", "maybe", "caf\u00e9"))


def test_first_of_equal_hits():
    one = {5: (0.9, 8)}
    other = {5: (0.9, 3), 6: (0.8, 1)}
    for parts in ([one, other], [other, one]):
        assert count_near_overlap(parts).examples == {"near_overlap": [(5, 3), (6, 1)]}
