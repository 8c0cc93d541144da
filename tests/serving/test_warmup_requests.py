"""Warm-up requests: what is written is what a server reads, and what the model answers."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from regard.serving import saved_model, warmup_requests
from regard.serving.check_inputs import CheckRow
from regard.serving.contract import WARMUP
from regard.serving.protobuf import read_tensor
from tests import fake_models, fake_tasks

TEXTS = ["abc", "", "zebra é", *"defghi"]


def check_rows():
    return [CheckRow("", {"source": text}, "", {"translation": text[::-1]}) for text in TEXTS]


def inputs(request):
    return {entry.key: read_tensor(entry.value) for entry in request.inputs}


def test_every_signature_gets_real_rows_of_several_sizes(tmp_path):
    contract = fake_models.Reverser().contract()
    path = tmp_path / "requests"
    assert warmup_requests.write(path, contract, check_rows()) == 6
    result = warmup_requests.read(path)
    messages = [
        (request.model_spec.signature_name, len(inputs(request)["source"])) for request in result
    ]
    assert messages == [(name, size) for name in contract["signatures"] for size in (1, 8)]
    several = inputs(result[-1])
    assert [text.decode() for text in several["source"]] == TEXTS[:8]
    assert [text.decode() for text in several["target"]] == [text[::-1] for text in TEXTS[:8]]


def test_the_model_answers_all_of_them(tmp_path):
    folder = fake_models.save(fake_tasks.Sorter(), tmp_path / "model")
    model = saved_model.load(folder)
    rows = [[[0.5, 0], [0.25, 1]], [[n / 8, 0.0] for n in range(8)]] * 4
    requested = [CheckRow("", {"points": points}, "") for points in rows]
    warmup_requests.write(folder / WARMUP, model.contract, requested)
    for request in warmup_requests.read(folder / WARMUP):
        arguments = inputs(request)
        assert arguments["points"].dtype == np.float32
        result = model.run(request.model_spec.signature_name, arguments)
        assert result["order"].shape[0] == len(arguments["points_length"])


def test_tensorflow_reads_the_file_and_we_read_its_files(tmp_path):
    path, copy = tmp_path / "ours", tmp_path / "copy"
    warmup_requests.write(path, fake_models.Reverser().contract(), check_rows())
    records = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    logs = [prediction_log_pb2.PredictionLog.FromString(record) for record in records]
    request = logs[1].predict_log.request
    assert tf.make_ndarray(request.inputs["source"]).tolist()[2] == "zebra é".encode()
    with tf.io.TFRecordWriter(str(copy)) as file:
        for record in records:
            file.write(record)
    assert copy.read_bytes() == path.read_bytes()
    assert len(warmup_requests.read(copy)) == len(records)


@pytest.mark.parametrize("change", [slice(-1), slice(-3), slice(1, None), slice(-40, None)])
def test_a_damaged_file_is_refused(tmp_path, change):
    path = tmp_path / "requests"
    warmup_requests.write(path, fake_models.Reverser().contract(), check_rows())
    content = path.read_bytes()
    path.write_bytes(content[change])
    with pytest.raises(ValueError, match="damaged"):
        warmup_requests.read(path)
    path.write_bytes(content[:-10] + bytes([content[-10] ^ 1]) + content[-9:])
    with pytest.raises(ValueError, match="damaged"):
        warmup_requests.read(path)


def test_the_same_rows_give_the_same_bytes(tmp_path):
    contract = fake_models.Reverser().contract()
    for name in "ab":
        warmup_requests.write(tmp_path / name, contract, check_rows())
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_no_rows_no_requests(tmp_path):
    assert warmup_requests.write(tmp_path / "none", fake_models.Reverser().contract(), []) == 0
    assert warmup_requests.read(tmp_path / "none") == []


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "requests"
    path.write_bytes(b"no records at all, but some text")
    with pytest.raises(ValueError, match="is not a TFRecord file, or is damaged"):
        warmup_requests.read(path)
    log = prediction_log_pb2.PredictionLog()
    log.classify_log.request.model_spec.name = "m"
    for record, message in [
        (b"\xff\xff", "record 0"),
        (log.SerializeToString(), "not a predict_log"),
    ]:
        with tf.io.TFRecordWriter(str(path)) as file:
            file.write(record)
        with pytest.raises(ValueError, match=message):
            warmup_requests.read(path)
