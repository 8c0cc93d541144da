from __future__ import annotations

from pathlib import Path

import pytest

from components.errors import UserError
from components.predictor import plan, rows
from tests import fake_models


def split(tmp_path: Path, *shards) -> str:
    return str(Path(fake_models.examples(tmp_path, shards).uri, "Split-test"))


def row(line: int, length: int) -> dict:
    return {"source": "s" * length, "target": "t", "file": "f", "line": line}


def test_the_longest_rows_are_in_the_first_batch(tmp_path):
    """Lines 3, 1 in one file and 5, 2, 4 in the other; the longest are 4 and 1."""
    folder = split(tmp_path, [row(3, 2), row(1, 7)], [row(5, 1), row(2, 2), row(4, 9)])
    made = plan.make(folder, fake_models.FEATURES, batch_size=2)
    assert (made.rows, made.sizes, made.windows) == (5, [2, 2, 1], [[0, 1, 2]])
    first, second = made.shards
    assert [Path(shard.path) for shard in made.shards] == rows.shards(folder)
    assert (first.rows, first.batches) == ([2, 0], [1, 0])
    assert (second.rows, second.batches) == ([4, 1, 3], [2, 1, 0])
    assert (first.announced, second.announced) == (3, 0)


def test_windows_are_sorted_each_for_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "WINDOW", 4)
    lengths = [1, 9, 3, 4, 20, 2, 8, 7, 6]
    folder = split(tmp_path, [row(n, length) for n, length in enumerate(lengths)])
    made = plan.make(folder, fake_models.FEATURES, batch_size=2)
    (shard,) = made.shards
    batches = [
        [lengths[n] for n, of in zip(shard.rows, shard.batches, strict=True) if of == batch]
        for batch in range(len(made.sizes))
    ]
    assert batches == [[20, 8], [9, 4], [2, 7], [6], [1, 3]]
    assert made.windows == [[1, 4], [0, 2], [3]]
    assert made.sizes == [2, 2, 2, 1, 2]


def test_nothing_to_plan(tmp_path):
    made = plan.make(split(tmp_path, []), fake_models.FEATURES, batch_size=2)
    assert (made.rows, made.sizes, made.windows) == (0, [], [])


def test_the_file_without_a_feature_is_named(tmp_path):
    folder = split(tmp_path, [row(1, 1)], [{"caption": "a", "target": "b"}])
    with pytest.raises(UserError, match=r"no feature 'source' \(they have: caption, target\)") as e:
        plan.make(folder, fake_models.FEATURES, batch_size=2)
    assert e.value.where.endswith("data_tfrecord-00001-of-00002.gz")
