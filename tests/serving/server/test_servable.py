"""One loaded version: limits of time and memory."""

import contextlib
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from grpc import StatusCode
from tensorflow_serving.apis import prediction_log_pb2

from regard.serving.contract import WARMUP
from regard.serving.server.errors import ServingError
from regard.serving.server.sample_row import SampleRow
from regard.serving.server.servable import Servable
from tests import fake_models

MEGABYTES = 32


class Counter(tf.Module):
    """Counts to a limit, one step at a time, and holds a large variable."""

    def __init__(self):
        super().__init__()
        self.weights = tf.Variable(tf.random.uniform([MEGABYTES, 1 << 18]))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="limit")])
    def count(self, limit):
        limit = tf.reduce_max(limit)
        tf.debugging.assert_non_negative(limit, "negative")
        (count,) = tf.while_loop(lambda i: i < limit, lambda i: (i + 1,), [tf.zeros_like(limit)])
        return {"count": count[None], "weight": self.weights[0, :1]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path, counter = tmp_path_factory.mktemp("counter") / "1", Counter()
    tf.saved_model.save(counter, str(path), {"serving_default": counter.count})
    return path


def limit(number):
    return {"limit": np.array([number], np.int64)}


def test_a_computation_is_cancelled_at_its_time_limit(folder):
    servable = Servable("counter", folder)
    with pytest.raises(ServingError) as caught:
        servable.run("", limit(1 << 62), timeout=0.2)
    assert caught.value.code is StatusCode.DEADLINE_EXCEEDED
    assert caught.value.message == "The model took more than 0.2 s."
    assert servable.run("", limit(5), timeout=60)["count"].tolist() == [5]
    servable.close()


def test_many_failures_do_not_fill_the_memory(folder, monkeypatch):
    """TensorFlow never frees what it keeps of a failed run with a time limit."""
    servable, limits = Servable("counter", folder), []
    run = servable._session.run

    def record(name, inputs, timeout):
        limits.append(timeout)
        return run(name, inputs, timeout)

    monkeypatch.setattr(servable._session, "run", record)
    monkeypatch.setattr("regard.serving.server.servable._MAX_FAILURES", 3)
    servable.run("", limit(5), timeout=60)
    for _ in range(5):
        with pytest.raises(ServingError, match="negative"):
            servable.run("", limit(-1), timeout=60)
    assert limits == [60] * 4 + [0] * 2
    servable._seconds_per_row = 7.0  # too slow to go without a limit
    servable.run("", limit(5), timeout=60)
    assert limits[-1] == 60
    servable.close()


def test_only_signatures_with_a_batch_are_batchable(tmp_path):
    path = fake_models.save(fake_models.OneRow(), tmp_path / "1")
    servable = Servable("one-row", path)
    names = {"": True, "one_row": False, "align": True}
    assert {name: servable.is_batchable(name) for name in names} == names


def test_a_warm_up_request_without_a_signature_is_one_of_the_default(tmp_path, monkeypatch):
    path = fake_models.save(fake_models.Reverser(), tmp_path / "1")
    log = prediction_log_pb2.PredictionLog()
    log.predict_log.request.inputs["source"].CopyFrom(tf.make_tensor_proto(["a"]))
    (path / WARMUP).parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path / WARMUP)) as writer:
        writer.write(log.SerializeToString())
    servable, names = Servable("reverser", path), []
    monkeypatch.setattr(servable, "run", lambda name, inputs: names.append(name))
    servable.warm_up("serving_default")
    assert names == ["serving_default"]


def test_a_closed_model_returns_its_memory(folder):
    def load():
        servable = Servable("counter", folder)
        servable.run("", limit(1))
        servable.close()
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    load()
    before = load()
    after = [load() for _ in range(8)][-1]
    assert after - before < MEGABYTES


def test_a_model_that_cannot_run_is_an_error_of_the_server(tmp_path, monkeypatch):
    """TensorFlow loads a model without its variables, and reports FAILED_PRECONDITION later."""
    path = fake_models.save(fake_models.Reverser(), tmp_path / "1")
    shutil.rmtree(path / "variables")
    with pytest.raises(ServingError, match=r"variables\.index is missing") as caught:
        Servable("reverser", path)
    assert caught.value.code is StatusCode.UNAVAILABLE
    monkeypatch.setattr("regard.serving.server.servable.check_whole", lambda path: None)
    servable = Servable("reverser", path)
    for run in (servable.try_one_row, lambda: servable.run("", {"source": np.array([b"a"])})):
        with pytest.raises(ServingError) as caught:
            run()
        assert caught.value.code is StatusCode.INTERNAL
        assert "{{" not in caught.value.message
        assert "__inference" not in caught.value.message


def test_a_model_that_is_too_slow_for_a_made_up_row_cannot_be_used(tmp_path, monkeypatch):
    def run(*_):
        raise ServingError(StatusCode.DEADLINE_EXCEEDED, "The model took more than 1 s.")

    servable = Servable("reverser", fake_models.save(fake_models.Reverser(), tmp_path / "1"))
    monkeypatch.setattr(servable, "run", run)
    monkeypatch.setattr(
        "regard.serving.server.servable.find_row",
        lambda *_: SampleRow({"source": np.array([b"a"], object)}, is_real=False),
    )
    with pytest.raises(ServingError, match="cannot run: The model took more than 1 s"):
        servable.try_one_row(1.0)


def test_a_made_up_row_may_be_rejected_but_must_not_fail(folder, tmp_path):
    class Model(tf.Module):
        def __init__(self, code):
            super().__init__()
            self.code = code

        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
        def run(self, x):
            if self.code == "rejects":
                tf.debugging.assert_positive(x)
            if self.code == "fails":
                x += tf.io.decode_raw(tf.io.read_file("/no/such/file"), tf.float32)
            return {"y": x}

    for code in ("runs", "rejects", "fails"):
        model = Model(code)
        tf.saved_model.save(model, str(tmp_path / code), {"serving_default": model.run})
        expected = pytest.raises(ServingError) if code == "fails" else contextlib.nullcontext()
        with expected:
            Servable("model", tmp_path / code).try_one_row()
