"""Every row goes to one device, whoever reads it."""

import dataclasses
import shutil
from collections import Counter
from itertools import chain
from types import SimpleNamespace

import pytest

from components.trainer import fitting
from components.trainer.checkpoint import Position
from components.trainer.shares import ByFile, ByRow, note, shared
from tests.components.trainer import devices


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    devices.write_rows(folder)
    return folder


def teams(workers, local):
    """The places of all workers, each with so many devices."""
    return [
        SimpleNamespace(
            workers=workers,
            worker=w,
            devices=local,
            size=workers * local,
            number=lambda device, w=w: w * local + device,
        )
        for w in range(workers)
    ]


def rows(batch):
    """The rows of a batch that are not padding."""
    pairs = zip(batch["source"].tolist(), batch["target"].tolist(), strict=True)
    found = [tuple(tuple(i for i in side if i) for side in pair) for pair in pairs]
    return [row for row in found if row[0]]


def flat(lists):
    return list(chain.from_iterable(lists))


def epoch(shares, number=0, skip=0):
    """The rows of each batch of each device."""
    steps = shares.epoch(number, skip).as_numpy_iterator()
    return [[rows(part) for part in parts] for parts in steps]


@pytest.mark.parametrize(("workers", "local"), [(1, 3), (2, 1), (2, 2)])
def test_by_row_all_devices_together_have_the_batches_of_one(data, workers, local):
    batches = devices.batches(data, "train-0")
    whole = [rows(batch) for batch in batches.epoch(1).as_numpy_iterator()]
    shares = [ByRow(batches, team) for team in teams(workers, local)]
    found = [epoch(share, 1) for share in shares]
    for step, expected in enumerate(whole):
        parts = [part for one in found for part in one[step]]
        assert len(parts) == workers * local
        assert flat(parts) == expected
        assert max(map(len, parts)) <= -(-len(expected) // len(parts))
    assert [len(one) for one in found] == [shares[0].size()] * workers


def test_by_file_every_row_is_read_once_and_all_make_as_many_steps(data):
    batches = devices.batches(data, "train")
    both = teams(2, 2)
    found = [epoch(shared(batches, team)) for team in both]
    assert len(found[0]) == len(found[1]) == shared(batches, both[0]).size()
    read = Counter(row for one in found for step in one for part in step for row in part)
    whole = [rows(batch) for batch in batches.epoch().as_numpy_iterator()]
    assert read == Counter(flat(whole))
    assert flat(found[1][-1]) == []  # the smaller file was at an end before


@pytest.mark.parametrize("split", ["train-0", "train"])
def test_rows_are_counted_as_by_one_device_and_read_for_it_once(data, tmp_path, split):
    shutil.copytree(data, tmp_path, dirs_exist_ok=True)
    alone = dataclasses.replace(devices.batches(tmp_path, split), max_length=9)
    shares = shared(dataclasses.replace(alone), teams(2, 1)[0])
    expected, size = alone.count(), shared(alone, teams(2, 1)[0]).size()
    assert shares.count() == expected
    assert expected["too_long"]
    for path in tmp_path.glob("*.gz"):
        path.unlink()
    assert shares.size() == size


def test_by_file_the_budget_is_divided(data):
    shares = ByFile(devices.batches(data, "train"), teams(2, 1)[0])
    for (part,) in shares.epoch(0).as_numpy_iterator():
        assert part["source"].size + part["target"].size <= 80 or len(part["source"]) == 1


@pytest.mark.parametrize("split", ["train-0", "train"])
def test_what_was_done_is_left_out(data, split):
    for team in teams(2, 1):
        shares = shared(devices.batches(data, split), team)
        assert epoch(shares, 2, 3) == epoch(shares, 2)[3:]


def test_fewer_files_than_workers_are_shared_by_row(data):
    batches, both = devices.batches(data, "train-0"), teams(2, 1)
    assert isinstance(shared(batches, both[0]), ByRow)
    assert "1 file, fewer than workers" in note(shared(batches, both[0]), both[0], 1)
    batches = devices.batches(data, "train")
    assert "its own of 2 files" in note(shared(batches, both[0]), both[0], 2)
    assert isinstance(shared(batches, teams(1, 2)[0]), ByRow)


def test_an_epoch_begins_again_where_its_batches_have_changed(data):
    batches = devices.batches(data, "train")
    position = Position(epoch=3, batch=5)
    fitting._same_batches(position, ByRow(batches, teams(2, 1)[0]))
    assert (position.epoch, position.batch) == (3, 5)
    fitting._same_batches(position, ByFile(batches, teams(2, 1)[0]))
    assert (position.epoch, position.batch, position.files_apart) == (3, 0, 2)
