"""Batches of one split, and their division among devices and workers."""

import dataclasses
import shutil
from collections import Counter
from itertools import chain
from types import SimpleNamespace

import numpy as np
import pytest

from regard.components.trainer import training_loop
from regard.components.trainer.checkpoint import TrainState
from regard.components.trainer.input_pipeline import (
    Batches,
    BatchSharding,
    FileSharding,
    describe_sharding,
    shard_batches,
)
from regard.models import tasks
from tests.components.trainer.distributed_training import split_batches, write_splits
from tests.components.trainer.tfrecords import SPEC, write_tfrecords


@pytest.fixture(scope="module")
def pairs():
    random = np.random.default_rng(0)
    return [
        ([4 + i % 7] * int(random.integers(1, 30)), [4 + i % 5] * int(random.integers(1, 30)))
        for i in range(500)
    ] + [([], [5]), ([5], []), ([4] * 40, [5])]


@pytest.fixture(scope="module")
def batches(pairs, tmp_path_factory):
    pattern = write_tfrecords(tmp_path_factory.mktemp("data") / "train.gz", pairs)
    return Batches([pattern], SPEC, tasks.get("translation"), batch_tokens=400, max_length=32)


def dataset_rows(dataset):
    return [
        (tuple(s[s != 0]), tuple(t[t != 0]))
        for batch in dataset.as_numpy_iterator()
        for s, t in zip(batch["source"], batch["target"], strict=True)
    ]


def test_an_epoch_contains_every_usable_row_once(batches, pairs):
    expected = sorted((*s, 3, -1, *t, 3) for s, t in pairs if s and t and len(s) < 40)
    assert sorted((*s, -1, *t) for s, t in dataset_rows(batches.epoch(0))) == expected
    assert batches.count() == {"usable": 500, "incomplete": 2, "too_long": 1}


def test_padded_batches_stay_within_the_budget(batches):
    sizes = [b["source"].size + b["target"].size for b in batches.epoch(0).as_numpy_iterator()]
    assert max(sizes) <= 400
    assert np.mean(sizes) > 200  # and use it


def test_size_is_the_number_of_batches(batches):
    assert batches.size() == sum(1 for _ in batches.epoch(3))
    assert int(batches.epoch(3).cardinality()) == batches.size()


def test_the_order_depends_on_the_epoch_only(batches):
    assert dataset_rows(batches.epoch(1)) == dataset_rows(batches.epoch(1))
    assert dataset_rows(batches.epoch(1)) != dataset_rows(batches.epoch(2))


def test_skip_continues_within_an_epoch(batches):
    whole = [b["source"].tolist() for b in batches.epoch(1).as_numpy_iterator()]
    rest = [b["source"].tolist() for b in batches.epoch(1, skip=7).as_numpy_iterator()]
    assert rest == whole[7:]


def test_fixed_shapes_have_one_shape_per_bucket(batches):
    fixed = dataclasses.replace(batches, fixed_shapes=True)
    bounds, _ = fixed.buckets()
    parts = list(fixed.epoch(1).as_numpy_iterator())
    shapes = {b["source"].shape for b in parts}
    assert {width for _, width in shapes} <= {bound - 1 for bound in bounds}
    assert len({width for _, width in shapes}) == len(shapes)
    assert all(b["source"].shape == b["target"].shape for b in parts)
    assert max(b["source"].size + b["target"].size for b in parts) <= 400
    rows = sorted(row for row in dataset_rows(fixed.epoch(1)) if row[0])
    assert rows == sorted(dataset_rows(batches.epoch(1)))


@pytest.mark.parametrize("count", [1, 20])
def test_max_rows_samples_the_whole_split(batches, pairs, count):
    sample = dataclasses.replace(batches, max_rows=count)
    rows = [(*s, -1, *t) for s, t in dataset_rows(sample.epoch())]
    assert len(rows) == count
    assert set(rows) <= {(*s, 3, -1, *t, 3) for s, t in pairs}
    assert set(rows) != {(*s, 3, -1, *t, 3) for s, t in pairs[:count]}
    assert [(*s, -1, *t) for s, t in dataset_rows(sample.epoch())] == rows
    assert sample.size() == sum(1 for _ in sample.epoch())


def test_missing_files_are_an_error(tmp_path):
    missing = Batches([str(tmp_path / "no*")], SPEC, tasks.get("translation"), 400, 32)
    with pytest.raises(FileNotFoundError, match=r"no\*"):
        missing.count()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_splits(folder)
    return folder


def device_groups(workers, local_devices):
    """The device group of each worker, without TensorFlow's strategies."""
    return [
        SimpleNamespace(
            workers=workers,
            worker=w,
            local_devices=local_devices,
            size=workers * local_devices,
            device_number=lambda device, w=w: w * local_devices + device,
        )
        for w in range(workers)
    ]


def real_rows(batch):
    """The rows of a batch that are not padding."""
    pairs = zip(batch["source"].tolist(), batch["target"].tolist(), strict=True)
    rows = [tuple(tuple(i for i in side if i) for side in pair) for pair in pairs]
    return [row for row in rows if row[0]]


def flatten(lists):
    return list(chain.from_iterable(lists))


def epoch_rows(sharded, number=0, skip=0):
    """The rows of each device's part of each batch."""
    steps = sharded.epoch(number, skip).as_numpy_iterator()
    return [[real_rows(part) for part in parts] for parts in steps]


@pytest.mark.parametrize(("workers", "local_devices"), [(1, 3), (2, 1), (2, 2)])
def test_batch_sharding_divides_the_batches_of_one_device(data, workers, local_devices):
    batches = split_batches(data, "train-0")
    whole = [real_rows(batch) for batch in batches.epoch(1).as_numpy_iterator()]
    shards = [BatchSharding(batches, group) for group in device_groups(workers, local_devices)]
    rows = [epoch_rows(shard, 1) for shard in shards]
    for step, expected in enumerate(whole):
        parts = [part for worker in rows for part in worker[step]]
        assert len(parts) == workers * local_devices
        assert flatten(parts) == expected
        assert max(map(len, parts)) <= -(-len(expected) // len(parts))
    assert [len(worker) for worker in rows] == [shards[0].size()] * workers


def test_file_sharding_reads_every_row_once_in_equal_numbers_of_steps(data):
    batches = split_batches(data, "train")
    groups = device_groups(2, 2)
    rows = [epoch_rows(shard_batches(batches, group)) for group in groups]
    assert len(rows[0]) == len(rows[1]) == shard_batches(batches, groups[0]).size()
    counts = Counter(row for worker in rows for step in worker for part in step for row in part)
    whole = [real_rows(batch) for batch in batches.epoch().as_numpy_iterator()]
    assert counts == Counter(flatten(whole))
    assert flatten(rows[1][-1]) == []  # the smaller file has ended before


@pytest.mark.parametrize("split", ["train-0", "train"])
def test_counting_reads_the_files_once(data, tmp_path, split):
    shutil.copytree(data, tmp_path, dirs_exist_ok=True)
    batches = dataclasses.replace(split_batches(tmp_path, split), max_length=9)
    sharded = shard_batches(dataclasses.replace(batches), device_groups(2, 1)[0])
    expected = batches.count()
    size = shard_batches(batches, device_groups(2, 1)[0]).size()
    assert sharded.count() == expected
    assert expected["too_long"]
    for path in tmp_path.glob("*.gz"):
        path.unlink()
    assert sharded.size() == size


def test_file_sharding_divides_the_token_budget(data):
    sharded = FileSharding(split_batches(data, "train"), device_groups(2, 1)[0])
    for (part,) in sharded.epoch(0).as_numpy_iterator():
        assert part["source"].size + part["target"].size <= 80 or len(part["source"]) == 1


@pytest.mark.parametrize("split", ["train-0", "train"])
def test_skip_continues_a_sharded_epoch(data, split):
    for group in device_groups(2, 1):
        sharded = shard_batches(split_batches(data, split), group)
        assert epoch_rows(sharded, 2, 3) == epoch_rows(sharded, 2)[3:]


def test_the_number_of_files_decides_about_the_sharding(data):
    batches, groups = split_batches(data, "train-0"), device_groups(2, 1)
    sharded = shard_batches(batches, groups[0])
    assert isinstance(sharded, BatchSharding)
    assert "1 file, fewer than workers" in describe_sharding(sharded, groups[0], 1)
    batches = split_batches(data, "train")
    sharded = shard_batches(batches, groups[0])
    assert "2 files are divided" in describe_sharding(sharded, groups[0], 2)
    assert isinstance(shard_batches(batches, device_groups(1, 2)[0]), BatchSharding)


def test_an_epoch_restarts_if_its_batches_change(data):
    batches, group = split_batches(data, "train"), device_groups(2, 1)[0]
    state = TrainState(epoch=3, epoch_batches=5)
    training_loop._restart_changed_epoch(state, BatchSharding(batches, group))
    assert (state.epoch, state.epoch_batches) == (3, 5)
    training_loop._restart_changed_epoch(state, FileSharding(batches, group))
    assert (state.epoch, state.epoch_batches, state.file_shards) == (3, 0, 2)
