"""The search for ``training.batch_tokens: auto``: choice, record, and what does not change."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from regard.components.trainer import batch_search
from regard.components.trainer.backends.tensorflow import TensorFlowBackend
from regard.components.trainer.batch_search import RECORD, find_batch_tokens
from regard.components.trainer.batches import Batches, Sharing
from regard.components.trainer.checkpoint import Checkpoints
from regard.components.trainer.optimizer import compile_model
from regard.components.trainer.tensor_batches import epoch_dataset
from regard.components.trainer.training_loop import fit
from regard.core import events
from regard.core.errors import UserError
from tests.components.trainer import tiny_training
from tests.components.trainer.pairs import write_pairs
from tests.components.trainer.tiny_training import assert_equal_arrays

SIZES = (40, 80, 160, 320)


class LimitedModel(tiny_training.BagModel):
    """Exhausts the memory of a device that holds ``limit`` padded tokens."""

    limit = 0

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        def allocate(count):
            if count > self.limit:
                raise MemoryError("out of memory")
            return count

        count = ops.size(x["source"]) + ops.size(x["target"])
        with tf.control_dependencies([tf.numpy_function(allocate, [count], tf.int32)]):
            return super().compute_loss(tf.nest.map_structure(tf.identity, x), y, y_pred)


@pytest.fixture(autouse=True)
def small_sizes(monkeypatch, tmp_path):
    """Sizes for a corpus of 120 rows, and a file for the events."""
    monkeypatch.setattr(batch_search, "_SMALLEST", SIZES[0])
    monkeypatch.setattr(batch_search, "_MIN_BATCHES", 6)
    monkeypatch.setattr(batch_search, "_PASS_TOKENS", 0)
    monkeypatch.setenv(events.VARIABLE, str(tmp_path / "events.jsonl"))


@pytest.fixture
def gpu(monkeypatch):
    """A machine with a GPU, for the search alone."""
    monkeypatch.setattr(TensorFlowBackend, "has_gpu", True)


def notes(folder):
    pairs = events.read(folder / "events.jsonl", 0)
    return [event["text"] for event, _ in pairs if event["kind"] == "note"]


def variables(model):
    return [np.asarray(v).copy() for v in (*model.variables, *model.optimizer.variables)]


def without_size():
    return dataclasses.replace(tiny_training.batches()[0], batch_tokens=0)


def with_rates(monkeypatch, **rates):
    """Replace measurements: the rate of each size; a size without one must not be measured."""
    table = {int(size.removeprefix("s")): rate for size, rate in rates.items()}
    monkeypatch.setattr(batch_search, "_rate", lambda model, batches: table[batches.batch_tokens])


def search(folder, model=None, batches=None):
    model = model or tiny_training.new_model(tiny_training.training_config())
    return find_batch_tokens(model, batches or without_size(), Checkpoints(folder / "ck"))


def test_training_is_that_of_the_number(tmp_path):
    training = tiny_training.training_config(max_epochs=2)
    results = []
    for name in ("auto", "number"):
        model = tiny_training.new_model(training)
        checkpoints = Checkpoints(tmp_path / name)
        if name == "auto":
            before = variables(model)
            tokens = find_batch_tokens(model, without_size(), checkpoints)
            assert_equal_arrays(variables(model), before)
        train, evaluation = (
            dataclasses.replace(one, batch_tokens=tokens) for one in tiny_training.batches()
        )
        state = fit(model, train, evaluation, training, checkpoints, str(tmp_path / "log"))
        results.append((variables(model), [entry["loss"] for entry in state.history]))
    assert tokens in SIZES
    assert_equal_arrays(results[0][0], results[1][0])
    assert results[0][1] == results[1][1]


def test_sizes_are_measured_without_sampling_of_tags(tmp_path):
    """An epoch with many rows of a rare tag can have more batches than the data."""
    pairs = [*[([4, 5], [5])] * 100, *[([6] + [7] * 20, [5] * 20)] * 10]
    file = write_pairs(tmp_path / "pairs.arrow", pairs)
    batches = Batches(
        [file], tiny_training.TinyTask(), batch_tokens=0, max_length=32, tag_temperature=100.0
    )
    assert search(tmp_path, batches=batches) in SIZES


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({"s40": 10, "s80": 20, "s160": 30, "s320": 40}, 320),
        ({"s40": 10, "s80": 20, "s160": 39, "s320": 40}, 160),  # within 5% of the best
        ({"s40": 10, "s80": 9, "s160": 9.9}, 40),  # two sizes without a gain end it
        ({"s40": 10, "s80": 8, "s160": 20, "s320": 8}, 160),  # a single one does not
    ],
)
def test_smallest_of_the_fastest(tmp_path, monkeypatch, rates, expected):
    with_rates(monkeypatch, **rates)
    assert search(tmp_path) == expected
    assert json.loads((tmp_path / "ck" / RECORD).read_text())["batch_tokens"] == expected
    (note,) = notes(tmp_path)
    assert note.startswith(f"training.batch_tokens: auto is {expected} (tokens/s: 10 with 40, ")


def test_epoch_keeps_a_minimum_of_batches(tmp_path, monkeypatch):
    train = tiny_training.batches()[0]
    sizes = [dataclasses.replace(train, batch_tokens=size).size for size in (*SIZES, 640)]
    assert sizes[-2] >= 6 > sizes[-1]
    monkeypatch.setattr(batch_search, "_MIN_BATCHES", sizes[1])
    with_rates(monkeypatch, s40=10, s80=20)
    assert search(tmp_path) == 80
    monkeypatch.setattr(batch_search, "_MIN_BATCHES", 1000)  # the first size has no minimum
    with_rates(monkeypatch, s40=10)
    assert search(tmp_path / "other") == 40


def test_resumed_training_keeps_its_size(tmp_path, monkeypatch):
    with_rates(monkeypatch, s40=10, s80=20, s160=30, s320=30)
    assert search(tmp_path) == 160
    with_rates(monkeypatch)  # another measurement fails
    assert search(tmp_path) == 160
    assert len(set(notes(tmp_path))) == 1
    assert len(notes(tmp_path)) == 2


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_lost_record_of_a_training_with_checkpoints(tmp_path, content):
    (tmp_path / "ck").mkdir()
    (tmp_path / "ck" / "last.npz").touch()
    if content is not None:
        (tmp_path / "ck" / RECORD).write_text(content)
    with pytest.raises(UserError) as caught:
        search(tmp_path)
    assert str(tmp_path / "ck") in caught.value.remedy


def test_devices_share_a_batch(tmp_path, monkeypatch):
    with_rates(monkeypatch, s40=10, s80=9, s160=9)
    batches = dataclasses.replace(without_size(), sharing=Sharing(local_devices=4))
    assert search(tmp_path, batches=batches) == 160


def limited_model(limit):
    training = tiny_training.training_config()
    model = LimitedModel()
    model.limit = limit
    model.build()
    compile_model(model, training)
    return model


def padded_tokens(size):
    """The padded tokens of the largest batch of an epoch."""
    batches = dataclasses.replace(tiny_training.batches()[0], batch_tokens=size)
    return max(
        sum(int(tf.size(side)) for side in batch.values()) for batch in epoch_dataset(batches)
    )


@pytest.mark.parametrize(("capacity", "expected"), [(200, 160), (160, 120), (80, 60), (40, 40)])
def test_largest_that_fits_the_gpu(tmp_path, gpu, capacity, expected):
    """A GPU that holds batches of ``capacity`` tokens, and none of 1.25 times as many."""
    model = limited_model(padded_tokens(capacity))
    assert padded_tokens(capacity) < padded_tokens(capacity * 5 // 4)
    before = variables(model)
    assert search(tmp_path, model) == expected
    assert_equal_arrays(variables(model), before)
    assert "the memory of the GPU does not hold" in notes(tmp_path)[0]


def test_gpu_that_holds_all_sizes(tmp_path, gpu):
    assert search(tmp_path, limited_model(10**6)) == 320
    assert "an epoch has fewer than 6 batches" in notes(tmp_path)[0]


def test_gpu_that_holds_no_batch(tmp_path, gpu):
    with pytest.raises(UserError, match="does not hold 40 tokens") as caught:
        search(tmp_path, limited_model(1))
    assert caught.value.where == "training.batch_tokens"


def test_other_errors_are_not_taken_for_a_lack_of_memory(tmp_path, gpu, monkeypatch):
    model = tiny_training.new_model(tiny_training.training_config())

    def fail(*_, **__):
        raise tf.errors.InternalError(None, None, "the device is lost")

    monkeypatch.setattr(model, "fit", fail)
    with pytest.raises(tf.errors.InternalError):
        search(tmp_path, model)
