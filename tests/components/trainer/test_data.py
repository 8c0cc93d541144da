import dataclasses

import numpy as np
import pytest

from components.trainer.data import Batches
from models import tasks
from tests.components.trainer.records import SPEC, write


@pytest.fixture(scope="module")
def pairs():
    random = np.random.default_rng(0)
    return [
        ([4 + i % 7] * int(random.integers(1, 30)), [4 + i % 5] * int(random.integers(1, 30)))
        for i in range(500)
    ] + [([], [5]), ([5], []), ([4] * 40, [5])]


@pytest.fixture(scope="module")
def batches(pairs, tmp_path_factory):
    pattern = write(tmp_path_factory.mktemp("data") / "train.gz", pairs)
    return Batches([pattern], SPEC, tasks.get("translation"), batch_tokens=400, max_length=32)


def rows(data):
    return [
        (tuple(s[s != 0]), tuple(t[t != 0]))
        for batch in data.as_numpy_iterator()
        for s, t in zip(batch["source"], batch["target"], strict=True)
    ]


def test_an_epoch_has_every_usable_row_once(batches, pairs):
    expected = sorted((*s, 3, -1, *t, 3) for s, t in pairs if s and t and len(s) < 40)
    found = sorted((*s, -1, *t) for s, t in rows(batches.epoch(0)))
    assert found == expected
    assert batches.count() == {"usable": 500, "incomplete": 2, "too_long": 1}


def test_the_budget_holds_with_padding(batches):
    sizes = [b["source"].size + b["target"].size for b in batches.epoch(0).as_numpy_iterator()]
    assert max(sizes) <= 400
    assert np.mean(sizes) > 200  # and is used


def test_size_is_the_number_of_batches(batches):
    assert batches.size() == sum(1 for _ in batches.epoch(3))
    assert int(batches.epoch(3).cardinality()) == batches.size()


def test_an_epoch_is_the_same_again_and_another_is_not(batches):
    assert rows(batches.epoch(1)) == rows(batches.epoch(1))
    assert rows(batches.epoch(1)) != rows(batches.epoch(2))


def test_skipping_goes_on_where_it_stopped(batches):
    whole = [b["source"].tolist() for b in batches.epoch(1).as_numpy_iterator()]
    rest = [b["source"].tolist() for b in batches.epoch(1, skip=7).as_numpy_iterator()]
    assert rest == whole[7:]


def test_fixed_shapes_are_one_a_bucket(batches):
    fixed = dataclasses.replace(batches, fixed_shapes=True)
    bounds, _ = fixed.buckets()
    parts = list(fixed.epoch(1).as_numpy_iterator())
    shapes = {b["source"].shape for b in parts}
    assert {width for _, width in shapes} <= {bound - 1 for bound in bounds}
    assert len({width for _, width in shapes}) == len(shapes)  # one number of rows a width
    assert all(b["source"].shape == b["target"].shape for b in parts)
    assert max(b["source"].size + b["target"].size for b in parts) <= 400
    real = sorted(row for row in rows(fixed.epoch(1)) if row[0])
    assert real == sorted(rows(batches.epoch(1)))


@pytest.mark.parametrize("most", [1, 20])
def test_some_rows_of_all_of_them(batches, pairs, most):
    few = dataclasses.replace(batches, most=most)
    found = [(*s, -1, *t) for s, t in rows(few.epoch())]
    assert len(found) == most
    assert set(found) <= {(*s, 3, -1, *t, 3) for s, t in pairs}
    assert set(found) != {(*s, 3, -1, *t, 3) for s, t in pairs[:most]}
    assert [(*s, -1, *t) for s, t in rows(few.epoch())] == found
    assert few.size() == sum(1 for _ in few.epoch())


def test_missing_files_are_named(tmp_path):
    missing = Batches([str(tmp_path / "no*")], SPEC, tasks.get("translation"), 400, 32)
    with pytest.raises(FileNotFoundError, match=r"no\*"):
        missing.count()
