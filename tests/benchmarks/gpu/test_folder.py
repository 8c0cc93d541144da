"""The prepared folder, and the batches that are read from it."""

import numpy as np
import pytest

from benchmarks.gpu import folder as folders
from benchmarks.gpu import prepare, weights_file
from regard.components.trainer.epoch_plan import COARSE_GROWTH
from regard.models.vocabulary import EOS

ROWS = {"source": [[5, 6], [], [7] * 6], "target": [[8], [9], [5, 6, 7]]}


@pytest.fixture
def folder(tmp_path):
    folders.write_corpus(tmp_path / "multi30k.npz", {"train": ROWS})
    return tmp_path


def test_rows_are_read_as_they_were_written(folder):
    sides = folders.read_split(folder, folders.MULTI30K, "train")
    for side, rows in ROWS.items():
        assert [row.tolist() for row in map(sides[side].__getitem__, range(3))] == rows


def test_batches_are_those_of_the_trainer(folder):
    sides = folders.read_split(folder, folders.MULTI30K, "train")
    path = folder / "rows.arrow"
    batches = folders.make_batches(path, sides, 32, 8, seed=0, growth=COARSE_GROWTH)
    assert batches.count() == {"usable": 2, "incomplete": 1, "too_long": 0}
    batch = batches.read(None, 0)
    assert batch["source"].tolist()[0] == [5, 6, EOS, 0, 0, 0, 0, 0]
    assert batch["target"].tolist()[1] == [5, 6, 7, EOS, 0, 0, 0, 0]


def test_packed_rows_have_one_length(folder):
    sides = folders.read_split(folder, folders.MULTI30K, "train")
    packed = folders.pack_rows(sides, length=5, count=3)
    assert packed["source"].lengths.tolist() == [4, 4, 4]
    assert packed["target"][0].tolist() == [8, 9, 5, 6]


def test_translations_of_a_sentence_share_a_split():
    splits = [prepare.split_of(f"sentence {number}") for number in range(2000)]
    assert splits == [prepare.split_of(f"sentence {number}") for number in range(2000)]
    assert 5 <= splits.count("eval") <= 40 < splits.count("train")


@pytest.mark.parametrize(("max_bytes", "dtype"), [(16_000_000, "float32"), (2_000, "float16")])
def test_weights_are_stored_in_float16_if_they_must_be(tmp_path, max_bytes, dtype):
    weights = [np.arange(300, dtype="float32"), np.float32(0.5) * np.ones((2, 3), "float32")]
    path = tmp_path / "weights.npz"
    assert weights_file.write(path, weights, max_bytes) == dtype
    assert path.stat().st_size <= max_bytes
    for weight, other in zip(weights_file.read(path), weights, strict=True):
        np.testing.assert_array_equal(weight, other)


def test_weights_that_are_too_large_are_refused(tmp_path):
    with pytest.raises(ValueError):
        weights_file.write(tmp_path / "weights.npz", [np.zeros(10, "float32")], 20)
