"""The log of requests: its content and rotation, and files that cannot be written."""

import contextlib
import json
import os
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from regard.serving.server import request_log
from regard.serving.server.metrics import Metrics
from regard.serving.server.model_config import ModelConfig
from regard.serving.server.options import ManagerOptions, RequestLogOptions
from regard.serving.server.request_log import RequestLog
from tests.serving.server.requests import post, predict_request

HEAD = {"model": "m", "version": 1, "signature": "serving_default", "status": "OK"}
NASTY = 'Grüße\n\r\x00\x85\u2028\x9b31m"\\下'


def texts(*values):
    return np.array([value.encode() for value in values], object)


@pytest.fixture
def open_log(tmp_path):
    """Opens logs, and closes them at the end of the test."""
    with contextlib.ExitStack() as stack:

        def start(**options):
            metrics = Metrics()
            log = RequestLog(RequestLogOptions(tmp_path / "log.jsonl", **options), metrics)
            stack.callback(log.close)
            return log, metrics

        yield start


def add(log, *sources):
    log.add(time.monotonic(), HEAD, {"source": texts(*sources)}, {})


def read(folder):
    """The lines of the file and the rotated ones, in the order of time."""
    files = sorted(
        folder.glob("log.jsonl*"), key=lambda path: -int(path.suffix[1:].replace("jsonl", "0"))
    )
    return [json.loads(line) for path in files for line in path.read_bytes().splitlines()]


def counts(metrics):
    """The lines that were written, failed and dropped."""
    text = metrics.text()
    return {
        name: int(text.partition(f'request_log_count{{status="{name}"}} ')[2].split()[0])
        for name in ("written", "failed", "dropped")
    }


def wait_for(metrics, **expected):
    for _ in range(500):
        if {name: counts(metrics)[name] for name in expected} == expected:
            return
        time.sleep(0.01)
    raise AssertionError(counts(metrics))


def test_lengths_and_numbers_without_texts(open_log, tmp_path):
    log, _ = open_log()
    inputs = {
        "source": texts(NASTY, ""),
        "image": np.array([b"\xff\xd8\xff", b"\x89PNG"], object),
        "credit_score": np.array([1234.0, 4321.0]),
        "points": np.zeros((2, 3, 2), np.float32),
        "points_length": np.array([3, 2], np.int32),
    }
    outputs = {
        "translation": texts("secret", ""),
        "score": np.array([-0.5, np.nan], np.float32),
        "confidence": np.array([0.25, np.nan], np.float32),
        "source_cut": np.array([0, 7], np.int32),
        "hypotheses": np.array([[b"a", b"b"], [b"c", b"d"]], object),
        "class": np.array([1, 2]),
    }
    log.add(time.monotonic(), HEAD, inputs, outputs)
    log.close()
    first, second = read(tmp_path)
    assert first.pop("time") <= second.pop("time")
    assert first.pop("milliseconds") == second.pop("milliseconds") >= 0
    row = {"inputs": {"source": len(NASTY)}, "outputs": {"translation": 6}}
    assert first == {**HEAD, **row, "points_length": 3, "score": -0.5, "source_cut": 0} | {
        "confidence": 0.25
    }
    row = {"inputs": {"source": 0}, "outputs": {"translation": 0}}
    assert second == {**HEAD, **row, "points_length": 2, "score": None, "source_cut": 7} | {
        "confidence": None
    }
    assert (tmp_path / "log.jsonl").stat().st_mode & 0o777 == 0o600


def test_texts_cannot_break_lines_and_long_ones_are_left_out(open_log, tmp_path):
    log, _ = open_log(texts=True)
    add(log, NASTY, "x" * 5000)
    log.close()
    assert (tmp_path / "log.jsonl").read_bytes().isascii()
    first, second = read(tmp_path)
    assert first["texts"] == {"source": NASTY}
    assert "texts" not in second
    assert second["inputs"] == {"source": 5000}


@pytest.mark.parametrize(("sample", "low", "high"), [(0, 0, 0), (0.5, 400, 600), (1, 1000, 1000)])
def test_a_random_sample_of_rows(open_log, tmp_path, sample, low, high):
    log, _ = open_log(sample=sample)
    add(log, *map(str, range(1000)))
    log.close()
    assert low <= len(read(tmp_path)) <= high


def test_rotation_loses_and_repeats_nothing(open_log, tmp_path, monkeypatch):
    monkeypatch.setattr(request_log, "_MAX_LINES", 5)
    monkeypatch.setattr(request_log, "_WRITE_SECONDS", 0.001)
    log, metrics = open_log(texts=True, max_bytes=4000, files=40)
    for number in range(400):
        add(log, str(number))
    log.close()
    assert [row["texts"]["source"] for row in read(tmp_path)] == [*map(str, range(400))]
    assert counts(metrics) == {"written": 400, "failed": 0, "dropped": 0}
    assert max(path.stat().st_size for path in tmp_path.iterdir()) <= 4000


def test_the_number_of_files_is_limited(open_log, tmp_path, monkeypatch):
    monkeypatch.setattr(request_log, "_MAX_LINES", 5)
    monkeypatch.setattr(request_log, "_WRITE_SECONDS", 0.001)
    log, _ = open_log(max_bytes=2000, files=3)
    add(log, *map(str, range(200)))
    log.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("log.jsonl", "log.jsonl.1", "log.jsonl.2")
    ]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_a_file_of_someone_else_is_not_extended(tmp_path):
    path = tmp_path / "syslog"
    path.write_text("Nov 28 05:00:00 host kernel: started")
    with pytest.raises(FileExistsError):
        RequestLog(RequestLogOptions(path), Metrics())
    assert path.read_text() == "Nov 28 05:00:00 host kernel: started"


@pytest.mark.parametrize("number", [1, 2])
def test_a_file_of_someone_else_is_not_replaced_by_rotation(
    open_log, tmp_path, monkeypatch, number
):
    monkeypatch.setattr(request_log, "_MAX_LINES", 5)
    monkeypatch.setattr(request_log, "_WRITE_SECONDS", 0.001)
    (tmp_path / "mine").write_text("mine")
    (tmp_path / f"log.jsonl.{number}").symlink_to(tmp_path / "mine")
    log, metrics = open_log(max_bytes=2000, files=3)
    add(log, *map(str, range(200)))
    log.close()
    assert (tmp_path / f"log.jsonl.{number}").is_symlink()
    assert (tmp_path / "mine").read_text() == "mine"
    total = counts(metrics)
    assert total["failed"] > 0
    assert total["written"] + total["failed"] == 200


def test_a_part_of_a_line_does_not_damage_the_next(open_log, tmp_path):
    (tmp_path / "log.jsonl").write_text('{"time": "2026')
    log, _ = open_log()
    add(log, "a")
    log.close()
    first, second = (tmp_path / "log.jsonl").read_text().splitlines()
    assert first == '{"time": "2026'
    assert json.loads(second)["inputs"] == {"source": 1}


def test_a_removed_folder_loses_lines_which_are_counted_and_reported_once(tmp_path, caplog):
    folder, metrics = tmp_path / "logs", Metrics()
    folder.mkdir()
    log = RequestLog(RequestLogOptions(folder / "log.jsonl"), metrics)
    add(log, "a")
    wait_for(metrics, written=1)
    shutil.rmtree(folder)
    for number in (1, 2):
        add(log, "b")
        wait_for(metrics, failed=number)
    folder.mkdir()
    add(log, "cde")
    wait_for(metrics, written=2)
    log.close()
    assert [row["inputs"]["source"] for row in read(folder)] == [3]
    # Connections of other tests may still write to other logs.
    messages = [record.getMessage() for record in caplog.records if record.name == "regard.serve"]
    assert [message.partition(":")[0] for message in messages] == [
        "The request log loses lines, which the metrics count"
    ]


def test_a_full_disk_and_a_fifo_do_not_block(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (Path("/dev/full"), tmp_path / "fifo"):
        metrics = Metrics()
        log = RequestLog(RequestLogOptions(path, texts=True), metrics)
        add(log, *["x" * 1000] * 100)  # more than a FIFO holds
        wait_for(metrics, failed=100)
        log.close()
        assert not log._thread.is_alive()


def test_lines_that_wait_are_limited(open_log, tmp_path, monkeypatch):
    monkeypatch.setattr(request_log, "_MAX_WAITING", 10)
    monkeypatch.setattr(request_log, "_WRITE_SECONDS", 3600)
    log, metrics = open_log()
    add(log, *map(str, range(12)))
    log.close()
    assert counts(metrics) == {"written": 10, "failed": 0, "dropped": 2}
    assert len(read(tmp_path)) == 10


def test_both_apis_and_failed_requests(saved, run, tmp_path):
    options = RequestLogOptions(tmp_path / "log.jsonl", texts=True)
    models = [ModelConfig("reverser", saved / "reverser")]
    server = run(models, ManagerOptions(poll_seconds=0, request_log=options))
    assert post(server, "reverser:predict", {"instances": ["ab", "cde"]}).status_code == 200
    request = predict_request(outputs=["translation"], source=[b"fghi"])
    server.predictions.Predict(request, timeout=60)
    assert post(server, "reverser:predict", b"{").status_code == 400
    assert post(server, "nobody:predict", {"instances": ["ab"]}).status_code == 404
    wait_for(server.manager.metrics, written=5)
    *rows, invalid, unknown = read(tmp_path)
    assert [row["texts"] for row in rows] == [
        {"source": text, "translation": text[::-1].upper()} for text in ("ab", "cde", "fghi")
    ]
    # Also an output that the client does not request.
    assert [row["score"] for row in rows] == [-1.0, -1.5, -2.0]
    assert {(row["model"], row["version"], row["signature"]) for row in rows} == {
        ("reverser", 2, "serving_default")
    }
    assert (invalid["model"], invalid["status"]) == ("reverser", "INVALID_ARGUMENT")
    assert (unknown["model"], unknown["status"]) == ("", "NOT_FOUND")


def test_a_file_that_cannot_be_opened_stops_the_start(saved, run, tmp_path):
    options = ManagerOptions(request_log=RequestLogOptions(tmp_path))
    threads = threading.active_count()
    with pytest.raises(OSError, match="Is a directory"):
        run([ModelConfig("reverser", saved / "reverser")], options)
    assert threading.active_count() <= threads + 1  # the loop of the test
