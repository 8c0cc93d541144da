"""Batches of one split, and their division among devices and workers."""

import collections
import dataclasses
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

from regard.components.common.row_files import LENGTHS, write_rows
from regard.components.trainer import tensor_batches
from regard.components.trainer.batches import Batches, Sharing
from regard.components.trainer.tensor_batches import epoch_dataset
from regard.core.errors import UserError
from regard.models import tasks
from tests.components.trainer.pairs import write_pairs


@pytest.fixture(scope="module")
def pairs():
    random = np.random.default_rng(0)
    return [
        ([4 + i % 7] * int(random.integers(1, 30)), [4 + i % 5] * int(random.integers(1, 30)))
        for i in range(500)
    ] + [([], [5]), ([5], []), ([4] * 40, [5])]


@pytest.fixture(scope="module")
def batches(pairs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    files = [write_pairs(folder / f"{i}.arrow", pairs[i::2]) for i in range(2)]
    return Batches(files, tasks.get_network("translation"), batch_tokens=400, max_length=32)


def batch_rows(batch):
    pairs = zip(batch["source"], batch["target"], strict=True)
    return [(tuple(s[s != 0]), tuple(t[t != 0])) for s, t in pairs]


def dataset_rows(dataset):
    return [row for batch in dataset.as_numpy_iterator() for row in batch_rows(batch)]


@pytest.mark.parametrize("epoch", [None, 0])
def test_an_epoch_contains_every_usable_row_once(batches, pairs, epoch):
    expected = sorted((*s, 3, -1, *t, 3) for s, t in pairs if s and t and len(s) < 40)
    assert sorted((*s, -1, *t) for s, t in dataset_rows(epoch_dataset(batches, epoch))) == expected
    assert batches.count() == {"usable": 500, "incomplete": 2, "too_long": 1}


def test_padded_batches_stay_within_the_budget(batches):
    sizes = [
        b["source"].size + b["target"].size for b in epoch_dataset(batches, 0).as_numpy_iterator()
    ]
    assert max(sizes) <= 400
    assert np.mean(sizes) > 200  # and use it


def test_size_is_the_number_of_batches(batches):
    assert batches.size == sum(1 for _ in epoch_dataset(batches, 3))
    assert int(epoch_dataset(batches, 3, skip=2).cardinality()) == batches.size - 2


def test_the_order_depends_on_seed_and_epoch_only(batches, monkeypatch):
    orders = {
        (seed, epoch): dataset_rows(epoch_dataset(dataclasses.replace(batches, seed=seed), epoch))
        for seed in (0, 1)
        for epoch in (0, 1)
    }
    assert len({tuple(order) for order in orders.values()}) == 4
    for threads in (1, 8):
        monkeypatch.setattr(tensor_batches, "_PARALLEL_BATCHES", threads)
        assert dataset_rows(epoch_dataset(batches, 1)) == orders[0, 1]


def test_skip_continues_within_an_epoch(batches):
    whole = [b["source"].tolist() for b in epoch_dataset(batches, 1).as_numpy_iterator()]
    for skip in (0, 1, 7, len(whole) - 1, len(whole)):
        rest = [
            b["source"].tolist() for b in epoch_dataset(batches, 1, skip=skip).as_numpy_iterator()
        ]
        assert rest == whole[skip:]


def test_skipped_batches_are_not_read(batches, monkeypatch):
    read, files = [], batches._files
    monkeypatch.setattr(type(files), "read", count_rows(type(files).read, read))
    last = next(iter(epoch_dataset(batches, 1, skip=batches.size - 1)))
    assert read == [len(last["source"])]


def test_rows_are_sampled_by_the_first_token_of_their_source(tmp_path):
    counts = {8: 400, 4: 60, 6: 20}
    pairs = [([tag, 9 + i], [10 + i]) for tag, count in counts.items() for i in range(count)]
    pairs = [*pairs[::2], ([], [5]), *pairs[1::2], ([], [])]
    files = [write_pairs(tmp_path / f"{i}.arrow", pairs[i::2]) for i in range(2)]
    plain = Batches(files, tasks.get_network("translation"), batch_tokens=80, max_length=32)
    sampled = dataclasses.replace(plain, tag_temperature=2.0)
    total = sum(count**0.5 for count in counts.values())
    expected = {tag: 480 * count**0.5 / total for tag, count in counts.items()}
    rows = dataset_rows(epoch_dataset(sampled, 2))
    totals = collections.Counter(source[0] for source, _ in rows)
    assert {tag: totals[tag] for tag in counts} == {t: np.ceil(n) for t, n in expected.items()}
    assert (
        sampled.size
        == sum(1 for _ in epoch_dataset(sampled, 0))
        == sum(1 for _ in epoch_dataset(sampled, 5))
    )
    whole = [b["source"].tolist() for b in epoch_dataset(sampled, 2).as_numpy_iterator()]
    rest = [b["source"].tolist() for b in epoch_dataset(sampled, 2, skip=3).as_numpy_iterator()]
    assert rest == whole[3:]
    assert sorted(dataset_rows(epoch_dataset(sampled))) == sorted(
        dataset_rows(epoch_dataset(plain))
    )
    assert sampled.count() == plain.count()  # the statistics are those of the data


def count_rows(read, counts):
    def counted(self, numbers):
        counts.append(len(numbers))
        return read(self, numbers)

    return counted


def test_fixed_shapes_have_one_shape_per_bucket(batches):
    fixed = dataclasses.replace(batches, fixed_shapes=True)
    parts = list(epoch_dataset(fixed, 1).as_numpy_iterator())
    shapes = {b["source"].shape for b in parts}
    buckets = fixed.buckets
    assert shapes <= set(zip(buckets.sizes, buckets.bounds, strict=True))
    assert len({width for _, width in shapes}) == len(shapes)
    assert all(b["source"].shape == b["target"].shape for b in parts)
    assert max(b["source"].size + b["target"].size for b in parts) <= 400
    rows = sorted(row for row in dataset_rows(epoch_dataset(fixed, 1)) if row[0])
    assert rows == sorted(dataset_rows(epoch_dataset(batches, 1)))


def test_fixed_shapes_have_a_multiple_of_the_rows_of_all_devices(batches):
    fixed = dataclasses.replace(batches, fixed_shapes=True)
    shared = dataclasses.replace(fixed, row_multiple=4)
    assert shared.size == fixed.size
    filled = 0
    for number in range(fixed.size):
        batch, other = fixed.read(1, number), shared.read(1, number)
        for name, array in batch.items():
            rows = len(array)
            assert len(other[name]) == -(-rows // 4) * 4
            np.testing.assert_array_equal(other[name][:rows], array)
            assert not other[name][rows:].any()
            filled += len(other[name]) > rows
    assert filled


def test_images_keep_their_size_with_fixed_shapes(tmp_path):
    png = tf.io.encode_png(np.zeros([30, 12, 3], np.uint8)).numpy()
    columns = {
        "image": [[png]] * 3,
        "caption_ids": [[5], [5, 6], [5, 6, 7]],
        "caption_lengths": [[1], [2], [3]],
        LENGTHS: [[2], [3], [4]],
    }
    kinds = {name: pa.large_binary() if name == "image" else pa.int64() for name in columns}
    schema = pa.schema({name: pa.large_list(kind) for name, kind in kinds.items()})
    path = tmp_path / "rows.arrow"
    write_rows(path, schema, [pa.RecordBatch.from_pydict(columns, schema)])
    captions = Batches([str(path)], tasks.get_network("captioning"), 400, 20, fixed_shapes=True)
    (batch,) = epoch_dataset(captions, 0).as_numpy_iterator()
    assert batch["source"].shape == (25, 30, 12, 3)
    assert batch["target"].shape == (25, 8)


@pytest.mark.parametrize("count", [1, 20])
def test_max_rows_samples_the_whole_split(batches, pairs, count):
    sample = dataclasses.replace(batches, max_rows=count)
    rows = [(*s, -1, *t) for s, t in dataset_rows(epoch_dataset(sample))]
    assert len(rows) == count == sum(sample.count().values())
    assert set(rows) <= {(*s, 3, -1, *t, 3) for s, t in pairs}
    assert set(rows) != {(*s, 3, -1, *t, 3) for s, t in pairs[:count]}
    again = dataclasses.replace(sample)
    assert [(*s, -1, *t) for s, t in dataset_rows(epoch_dataset(again))] == rows


def test_the_first_complete_rows_have_no_padding(batches, pairs):
    rows = [tuple(map(tuple, (r["source_ids"], r["target_ids"]))) for r in batches.complete_rows(3)]
    assert rows == [tuple(map(tuple, pair)) for pair in pairs[0:6:2]]


def test_rows_with_several_references_are_several_training_rows(tmp_path):
    """Captions: the reader joins the references of a row, lengths decide which are used."""
    texts = [[[5], [5, 6, 7], []], [[8, 9]], [[]], [[9] * 40, [4]]]
    columns = {
        "source_ids": [[10 + i] for i in range(4)],
        "target_ids": [[i for text in row for i in text] for row in texts],
        "target_lengths": [[len(text) for text in row] for row in texts],
        LENGTHS: [[len(text) + 1 if text else 0 for text in row] for row in texts],
    }
    schema = pa.schema({name: pa.large_list(pa.int64()) for name in columns})
    path = tmp_path / "rows.arrow"
    write_rows(path, schema, [pa.RecordBatch.from_pydict(columns, schema)])
    several = Batches([str(path)], tasks.get_network("translation"), 400, 32)
    assert several.count() == {"usable": 4, "incomplete": 2, "too_long": 1}
    expected = [((10, 3), (5, 3)), ((10, 3), (5, 6, 7, 3)), ((11, 3), (8, 9, 3)), ((13, 3), (4, 3))]
    assert sorted(dataset_rows(epoch_dataset(several, 0))) == expected


def test_a_missing_file_is_an_error(batches, tmp_path):
    missing = dataclasses.replace(batches, files=[*batches.files, str(tmp_path / "no.arrow")])
    with pytest.raises(UserError, match="cannot be read") as raised:
        missing.count()
    assert raised.value.where == str(tmp_path / "no.arrow")


def test_a_path_is_not_a_pattern(batches, tmp_path):
    path = tmp_path / "run[1]" / "train.arrow"
    path.parent.mkdir()
    path.write_bytes(Path(batches.files[0]).read_bytes())
    copy = dataclasses.replace(batches, files=[str(path), batches.files[1]])
    assert copy.count() == batches.count()


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize(("workers", "local_devices"), [(1, 3), (2, 1), (2, 2)])
def test_a_group_divides_the_batches_of_one_device(
    batches, monkeypatch, workers, local_devices, fixed
):
    single = dataclasses.replace(batches, fixed_shapes=fixed)
    whole = [batch_rows(batch) for batch in epoch_dataset(single, 1).as_numpy_iterator()]
    steps: list[list] = [[] for _ in whole]
    read: list[int] = []
    monkeypatch.setattr(type(batches._files), "read", count_rows(type(batches._files).read, read))
    for worker in range(workers):
        sharing = Sharing(worker, workers, local_devices)
        shared = dataclasses.replace(single, sharing=sharing)
        assert shared.size == len(whole)
        read.clear()
        epoch = list(epoch_dataset(shared, 1).as_numpy_iterator())
        assert sum(read) < 500 / workers + 4 * len(whole)  # its part, and a row of an empty part
        for step, parts in zip(steps, epoch, strict=True):
            step += parts
        skipped = next(epoch_dataset(shared, 1, skip=3).as_numpy_iterator())
        np.testing.assert_equal(skipped, epoch[3])
    for parts, expected in zip(steps, whole, strict=True):
        assert len(parts) == workers * local_devices
        assert {len(part["source"]) for part in parts} == {-(-len(expected) // len(parts))}
        rows = [row for part in parts for row in batch_rows(part)]
        assert rows[: len(expected)] == expected
        assert not any(map(any, rows[len(expected) :]))


def test_a_plan_needs_a_few_bytes_per_row(tmp_path):
    rows = [([4] * (1 + i % 20), [5] * (1 + i % 17)) for i in range(20_000)]
    path = write_pairs(tmp_path / "rows.arrow", rows, batch_rows=1024)
    many = Batches([path], tasks.get_network("translation"), 4096, 32)
    many.count()
    tracemalloc.start()
    many._plan(0)
    size, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 6 * len(rows)
    assert peak < 40 * len(rows)
