from __future__ import annotations

import time

import pyarrow as pa
import pytest

from components import events
from components.predictor import parts, watching
from components.predictor.parts import Told


def told(rows: int, seconds: float, worker: str = "a") -> Told:
    return Told(rows, seconds, worker, 0.0, "CPU", 0, 0)


def test_workers_work_side_by_side():
    several = [told(10, 1.0), told(10, 2.0, "b"), told(10, 2.0)]
    assert watching.seconds(several) == 3.0
    assert watching.speed(several) == 10.0
    assert watching.seconds([]) == watching.speed([]) == 0.0


def test_progress_is_told_while_the_block_runs(tmp_path, monkeypatch):
    log, folder = tmp_path / "events.jsonl", tmp_path / "parts"
    folder.mkdir()
    monkeypatch.setenv(events.VARIABLE, str(log))
    monkeypatch.setattr(watching, "SECONDS_BETWEEN_EVENTS", 0.01)
    table = pa.table({"row": [0]})
    with watching.watching(folder, "the model", "rows", 1000, 0.5, 1.0):
        parts.write(folder, 0, table, told(250, 5.0))
        until = time.monotonic() + 30
        while not log.exists() and time.monotonic() < until:
            time.sleep(0.01)
        (seen,) = (event for event, _ in events.read(log))
        parts.write(folder, 1, table, told(750, 5.0))
    last = [event for event, _ in events.read(log)][-1]
    assert seen["text"] == "the model: 250 of 1,000 rows, 50 rows/s"
    assert (seen["fraction"], seen["sentences_per_second"]) == (0.625, 50.0)
    assert last["text"] == "the model: 1,000 of 1,000 rows, 100 rows/s"
    assert last["fraction"] == 1.0


def test_a_block_that_fails_is_not_said_to_be_done(tmp_path, monkeypatch):
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    parts.write(tmp_path, 0, pa.table({"row": [0]}), told(1, 1.0))
    with (
        pytest.raises(ValueError, match="wrong"),
        watching.watching(tmp_path, "m", "rows", 1, 0.0, 1.0),
    ):
        raise ValueError("wrong")
    assert not log.exists()
