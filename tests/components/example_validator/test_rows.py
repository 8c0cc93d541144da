from __future__ import annotations

import pytest
import tensorflow as tf

from components.example_validator.rows import Shard, fetch, find, read
from components.example_validator.tally import reference

CHECKS = {
    "empty_side": {},
    "length_ratio": {"ratio": 3.0},
    "too_long": {"characters": 10},
}


@pytest.mark.parametrize(
    ("row", "names"),
    [
        (("abc", "ab"), []),
        ((" \u3000", "ab"), ["empty_side"]),
        (("", "abcd"), ["empty_side", "length_ratio"]),
        (("abc", "a" * 9), []),
        (("abc", "a" * 10), ["length_ratio"]),
        (("漢" * 11, "a" * 9), ["too_long"]),
    ],
)
def test_what_is_found_in_a_row(row, names):
    assert find(row, CHECKS) == names


def test_a_check_that_is_off_finds_nothing():
    assert find(("", "a" * 100), {}) == []


@pytest.fixture
def shard(tmp_path):
    path = str(tmp_path / "data.gz")
    with tf.io.TFRecordWriter(path, "GZIP") as writer:
        for i in range(5):
            example = tf.train.Example()
            feature = example.features.feature
            feature["source"].bytes_list.value.append(f"ü{i}".encode())
            if i != 3:
                feature["target"].bytes_list.value.append(b"t")
            feature["file"].bytes_list.value.append(b"a.en")
            feature["line"].int64_list.value.append(i + 1)
            writer.write(example.SerializeToString())
    return Shard(0, "train", path)


def test_rows_come_back_whatever_the_batch(shard):
    rows = list(read(shard.path, ["source", "target"], batch=2))
    assert rows == list(read(shard.path, ["source", "target"]))
    assert rows[4] == (["ü4", "t"], "a.en", 5)
    assert rows[3][0] == ["ü3", ""]


def test_rows_are_fetched_by_reference(shard):
    refs = {reference(0, 0), reference(0, 4)}
    rows = fetch([shard], ["source", "target"], refs)
    assert {ref: row[2] for ref, row in rows.items()} == {0: 1, 4: 5}
