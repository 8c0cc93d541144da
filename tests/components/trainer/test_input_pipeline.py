"""Batches of one split, and their division among devices and workers."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from regard.components.trainer import input_pipeline
from regard.components.trainer.input_pipeline import Batches
from regard.models import tasks
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
    path = write_tfrecords(tmp_path_factory.mktemp("data") / "train.gz", pairs)
    return Batches([path], SPEC, tasks.get("translation"), batch_tokens=400, max_length=32)


def batch_rows(batch):
    pairs = zip(batch["source"], batch["target"], strict=True)
    return [(tuple(s[s != 0]), tuple(t[t != 0])) for s, t in pairs]


def dataset_rows(dataset):
    return [row for batch in dataset.as_numpy_iterator() for row in batch_rows(batch)]


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


FILES, FILE_ROWS = 20, 300


@pytest.fixture(scope="module")
def sorted_corpus(tmp_path_factory):
    """A corpus sorted by source: the token of each file, and as target the number of the row."""
    folder = tmp_path_factory.mktemp("sorted")
    files = []
    for i in range(FILES):
        pairs = [([4 + i] * 3, [4 + FILE_ROWS * i + j]) for j in range(FILE_ROWS)]
        files.append(write_tfrecords(folder / f"train-{i:02d}.gz", pairs))
    return Batches(files, SPEC, tasks.get("translation"), batch_tokens=400, max_length=32)


@pytest.mark.parametrize(("open_files", "min_files"), [(64, 12), (4, 3.5)])
def test_a_corpus_larger_than_the_shuffle_buffer_is_mixed(
    sorted_corpus, monkeypatch, open_files, min_files
):
    monkeypatch.setattr(input_pipeline, "_SHUFFLE_BUFFER", 200)
    monkeypatch.setattr(input_pipeline, "_OPEN_FILES", open_files)

    def order(epoch):
        rows = sorted_corpus.rows(epoch).as_numpy_iterator()
        return np.array([row["target_ids"][0] - 4 for row in rows])

    count = FILES * FILE_ROWS
    assert (order(None) == np.arange(count)).all()
    for epoch in (0, 1):
        assert sorted(order(epoch)) == list(range(count))
        assert (order(epoch) == order(epoch)).all()
        displacement = np.abs(order(epoch) - np.arange(count)).mean()
        assert displacement > count / 4  # count / 3 in a random order
    files = [order(epoch)[: FILE_ROWS // 2] // FILE_ROWS for epoch in (0, 1)]
    assert list(files[0]) != list(files[1])

    epoch = [batch["source"][:, 0] for batch in sorted_corpus.epoch(0).as_numpy_iterator()]
    assert {len(sources) for sources in epoch} == {25}
    # 14.5 of 20 files, if the 25 rows of a batch are drawn at random
    assert np.mean([len(set(sources)) for sources in epoch]) > min_files
    rest = [b["source"][:, 0] for b in sorted_corpus.epoch(0, skip=9).as_numpy_iterator()]
    np.testing.assert_array_equal(rest, epoch[9:])


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


def test_a_missing_file_is_an_error(batches, tmp_path):
    missing = dataclasses.replace(batches, files=[*batches.files, str(tmp_path / "no.gz")])
    with pytest.raises(tf.errors.NotFoundError, match=r"no\.gz"):
        missing.count()


def test_a_path_is_not_a_pattern(batches, tmp_path):
    path = tmp_path / "run[1]" / "train.gz"
    path.parent.mkdir()
    path.write_bytes(Path(batches.files[0]).read_bytes())
    copy = dataclasses.replace(batches, files=[str(path)])
    assert copy.count() == batches.count()


@pytest.mark.parametrize(("workers", "local_devices"), [(1, 3), (2, 1), (2, 2)])
def test_a_group_divides_the_batches_of_one_device(batches, workers, local_devices):
    whole = [batch_rows(batch) for batch in batches.epoch(1).as_numpy_iterator()]
    steps: list[list] = [[] for _ in whole]
    for worker in range(workers):
        group = SimpleNamespace(
            size=workers * local_devices,
            local_devices=local_devices,
            device_number=lambda device, worker=worker: worker * local_devices + device,
        )
        shared = dataclasses.replace(batches, group=group)
        assert shared.size() == len(whole)
        epoch = list(shared.epoch(1).as_numpy_iterator())
        for step, parts in zip(steps, epoch, strict=True):
            step += [[row for row in batch_rows(part) if row[0]] for part in parts]
        skipped = next(shared.epoch(1, skip=3).as_numpy_iterator())
        np.testing.assert_equal(skipped, epoch[3])
    for parts, expected in zip(steps, whole, strict=True):
        assert len(parts) == workers * local_devices
        assert [row for part in parts for row in part] == expected
        assert max(map(len, parts)) <= -(-len(expected) // len(parts))
