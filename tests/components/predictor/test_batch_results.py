import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regard.components.predictor import batch_results
from regard.components.predictor.batch_results import BatchStats, ProgressScope
from regard.core import events
from regard.core.errors import UserError
from regard.serving.contract import SavedModelError
from regard.serving.saved_model import InputLengthError

STATS = BatchStats(2, 0.5, "a", 1.25, "CPU", 1, 7)


def table(*rows: int) -> pa.Table:
    return pa.table({"row": list(rows)})


def test_statistics_are_written_and_read(tmp_path):
    assert batch_results.read_stats(tmp_path, {}) == {}
    batch_results.write_batch(tmp_path, 12, table(4, 3), STATS)
    (tmp_path / ".00000013.parquet.aaaa.tmp").write_bytes(b"half")
    assert batch_results.read_stats(tmp_path, {}) == {12: STATS}
    assert pq.read_table(batch_results.batch_path(tmp_path, 12)).to_pydict() == {"row": [4, 3]}


def test_known_batches_are_not_read_again(tmp_path):
    batch_results.write_batch(tmp_path, 1, table(0), STATS)
    known = batch_results.read_stats(tmp_path, {})
    batch_results.batch_path(tmp_path, 1).write_bytes(b"unreadable")
    batch_results.write_batch(tmp_path, 0, table(1), STATS)
    assert batch_results.read_stats(tmp_path, known) == {0: STATS, 1: STATS}


def test_a_repeated_batch_counts_once(tmp_path):
    for _ in range(2):
        batch_results.write_batch(tmp_path, 3, table(1, 2), STATS)
    assert list(batch_results.read_stats(tmp_path, {})) == [3]


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (UserError("wrong", "a.yaml:3", "Correct it."), UserError, "a.yaml:3: wrong\nCorrect it."),
        (SavedModelError("no model"), SavedModelError, "no model"),
        (InputLengthError("a source has more"), InputLengthError, "a source has more"),
        (KeyError("x"), KeyError, "'x'"),
        (type("LocalError", (Exception,), {})("here"), RuntimeError, "LocalError: here"),
    ],
)
def test_errors_keep_their_type(tmp_path, error, kind, text):
    with pytest.raises(type(error)), batch_results.record_failure(tmp_path):
        raise error
    error_read = batch_results.read_failure(tmp_path)
    assert type(error_read) is kind
    assert str(error_read) == text


def test_without_an_error_nothing_is_recorded(tmp_path):
    with batch_results.record_failure(tmp_path):
        pass
    assert batch_results.read_failure(tmp_path) is None


def stats(rows: int, seconds: float, worker: str = "a") -> BatchStats:
    return BatchStats(rows, seconds, worker, 0.0, "CPU", 0, 0)


def test_workers_run_in_parallel():
    several = [stats(10, 1.0), stats(10, 2.0, "b"), stats(10, 2.0)]
    assert batch_results.decoding_seconds(several) == 3.0
    assert batch_results.rows_per_second(several) == 10.0
    assert batch_results.decoding_seconds([]) == batch_results.rows_per_second([]) == 0.0


def test_progress_is_reported_while_the_block_runs(tmp_path, monkeypatch):
    log, folder = tmp_path / "events.jsonl", tmp_path / "parts"
    folder.mkdir()
    monkeypatch.setenv(events.VARIABLE, str(log))
    monkeypatch.setattr(batch_results, "POLL_SECONDS", 0.01)
    scope = ProgressScope("the model", "rows", 1000, 0.5, 1.0)
    table = pa.table({"row": [0]})
    with batch_results.report_progress(folder, scope):
        batch_results.write_batch(folder, 0, table, stats(250, 5.0))
        deadline = time.monotonic() + 30
        while not (log.exists() and [*events.read(log)]) and time.monotonic() < deadline:
            time.sleep(0.01)
        (first,) = (event for event, _ in events.read(log))
        batch_results.write_batch(folder, 1, table, stats(750, 5.0))
    last = [event for event, _ in events.read(log)][-1]
    assert first["text"] == "the model: 250 of 1,000 rows, 50 rows/s"
    assert (first["fraction"], first["sentences_per_second"]) == (0.625, 50.0)
    assert last["text"] == "the model: 1,000 of 1,000 rows, 100 rows/s"
    assert last["fraction"] == 1.0


def test_a_failing_block_reports_no_progress(tmp_path, monkeypatch):
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    batch_results.write_batch(tmp_path, 0, pa.table({"row": [0]}), stats(1, 1.0))
    with (
        pytest.raises(ValueError, match="wrong"),
        batch_results.report_progress(tmp_path, ProgressScope("m", "rows", 1)),
    ):
        raise ValueError("wrong")
    assert not log.exists()
