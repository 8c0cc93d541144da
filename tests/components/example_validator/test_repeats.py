from __future__ import annotations

import random

import pytest

from components.example_validator.repeats import Packer, compare, content, count_seen, hashed
from components.example_validator.rows import Image
from components.example_validator.tally import Tally, reference
from components.seen import key


def tally(train, rest, limit=1 << 18):
    """What all buckets give for the rows of two shards, met in any order."""
    buckets = {}
    for shard, rows in enumerate((train, rest)):
        packer = Packer(shard == 0, "rows", limit)
        contents = [[content([text]) for text in row] for row in rows]
        packed = [
            p
            for i, row in enumerate(contents)
            for p in packer.add(reference(shard, i), hashed(row[:1]), hashed(row))
        ]
        for bucket, part in [*packed, *packer.flush()]:
            buckets.setdefault(bucket, []).append(part)
    for parts in buckets.values():
        random.Random(1).shuffle(parts)
    return Tally.total(compare(*met) for met in buckets.items())


def test_a_pair_that_comes_again_is_a_duplicate():
    train = [("a", "x"), ("b", "y"), ("a", "x"), ("a", "other"), ("a", "x")]
    found = tally(train, [])
    assert found.counts == {"duplicates": {0: 2}}
    assert found.examples["duplicates"] == [(2, 0), (4, 0)]


def test_the_sides_are_not_run_together():
    assert tally([("ab", "c"), ("a", "bc")], []).counts == {}


def test_all_inputs_together_overlap_or_do_not():
    packers = Packer(True, "rows"), Packer(False, "rows")
    rows = [[b"a", b"b"]], [[b"a", b"c"], [b"ab", b""], [b"a", b"b"]]
    parts = {}
    for shard, (packer, inputs) in enumerate(zip(packers, rows, strict=True)):
        for i, row in enumerate(inputs):
            assert not list(packer.add(reference(shard, i), hashed(row), hashed(row)))
        for bucket, part in packer.flush():
            parts.setdefault(bucket, []).append(part)
    found = Tally.total(compare(*met) for met in parts.items())
    assert found.examples["overlap"] == [(reference(1, 2), 0)]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ([" cafe\u0301"], ["caf\u00e9"], True),
        (["a", "b"], ["b", "a"], False),
        (["ab"], ["a", "b"], False),
        ([Image("a.png", b"x")], [Image("b.png", b"x")], True),
        ([Image("a.png", b"x")], [Image("a.png", b"y")], False),
        ([0.5, 1.0], [0.5, 1.0], True),
        ([0.5, 1.0], [1.0, 0.5], False),
        ([3], [3, 0], False),
        ([], [], True),
    ],
)
def test_values_that_count_as_the_same(one, other, same):
    assert (content(one) == content(other)) is same


def test_a_source_that_is_in_train_overlaps():
    found = tally([("a", "x"), ("b", "y")], [("c", "x"), ("b", "z"), (" b ", "z"), ("b", "y")])
    assert found.counts == {"overlap": {1: 3}}
    assert found.examples["overlap"][0] == (reference(1, 1), 1)


def test_repeats_inside_the_test_split_are_no_finding():
    assert tally([("a", "x")], [("b", "y"), ("b", "y")]).counts == {}


def test_many_small_packets_give_the_same():
    draw = random.Random(7)
    train = [(str(draw.randrange(300)), "x") for _ in range(1000)]
    rest = [(str(draw.randrange(400)), "x") for _ in range(100)]
    whole = tally(train, rest)
    assert tally(train, rest, limit=37) == whole
    assert whole.counts["duplicates"][0] == 1000 - len(set(train))
    assert whole.counts["overlap"][1] == sum(row in set(train) for row in rest)


def references(train, rest, limit=1 << 18):
    """What is counted of rows with several references each, and what was seen."""
    buckets = {}
    for shard, rows in enumerate((train, rest)):
        packer = Packer(shard == 0, "references", limit)
        packed = [
            p
            for i, row in enumerate(rows)
            for text in row
            for p in packer.add(reference(shard, i), key(text))
        ]
        for bucket, part in [*packed, *packer.flush()]:
            buckets.setdefault(bucket, []).append(part)
    found = Tally.total(compare(*met) for met in buckets.items())
    return found, count_seen(found)


@pytest.mark.parametrize("limit", [1 << 18, 2])
def test_a_reference_that_train_has_is_counted_once_a_row(limit):
    train = [["yes"], ["no"], ["yes"], ["cafe\u0301", "maybe"]]
    rest = [["perhaps"], ["maybe", "other", " no"], ["Yes"], ["caf\u00e9"]]
    found, keys = references(train, rest, limit)
    assert found.counts == {"target_overlap": {1: 2}}
    row = reference(1, 1)
    assert found.examples["target_overlap"] == [(row, 1), (reference(1, 3), 3)]
    assert keys == sorted(key(text) for text in ("no", "maybe", "caf\u00e9"))


def test_the_references_of_one_side_alone_are_no_finding():
    assert references([["yes"], ["yes"]], []) == (Tally(), [])
    assert references([], [["yes"], ["yes"]]) == (Tally(), [])


def test_what_train_says_often_is_packed_once():
    packer = Packer(True, "references")
    for i in range(1000):
        assert not list(packer.add(i, key("yes")))
    ((_, (train, packed)),) = packer.flush()
    assert (train, len(packed)) == (True, 16)
    assert references([["no"], ["yes"], ["yes"]], [["yes"]])[0].examples == {
        "target_overlap": [(reference(1, 0), 1)]
    }
