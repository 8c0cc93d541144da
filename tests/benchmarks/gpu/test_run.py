"""The processes of a run: their order, limits, rows and tables."""

import json
import os
import sys

import pytest

from benchmarks.gpu import run
from benchmarks.gpu.sizes import FULL, SMALL


def test_the_most_important_processes_are_first():
    parts = [process.part for process in run.processes(FULL, with_torch=True)]
    assert parts == [
        *("numerics", "numerics", "training", "training", "training", "torch", "torch"),
        *("search", "multi30k"),
    ]
    assert set(parts) == set(run.PARTS)


def test_without_torch_keras_computes_on_jax_only():
    processes = run.processes(SMALL, with_torch=False)
    assert {process.environment["KERAS_BACKEND"] for process in processes} == {"jax"}


def test_a_process_is_ended_at_its_limit(tmp_path):
    command = ["/bin/sh", "-c", f"echo $$ > {tmp_path / 'number'}; exec sleep 600"]
    assert run.wait(command, {}, seconds=1) == "timed out"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "number").read_text()), 0)


@pytest.mark.parametrize(("code", "status"), [(0, "finished"), (3, "failed: exit 3")])
def test_a_process_ends(code, status):
    command = [sys.executable, "-S", "-c", f"raise SystemExit({code})"]
    assert run.wait(command, {}, seconds=60) == status


def test_a_process_without_time_does_not_start(tmp_path):
    record = run.run_process(run.Process("search", 90), tmp_path, tmp_path / "out.json", 3.0)
    assert record["status"] == "skipped"
    assert record["rows"] == []


def test_a_failing_process_loses_no_rows_of_others(tmp_path, monkeypatch):
    def wait(command, environment, seconds):
        if "search" in command:
            return "failed: exit 1"
        rows = command[command.index("--rows") + 1]
        with open(rows, "w") as file:
            file.write('{"facts": {"device": "card"}}\n{"steps": 8000}\n{"cut')
        return "timed out"

    monkeypatch.setattr(run, "wait", wait)
    out = tmp_path / "out.json"
    run.run(tmp_path, out, SMALL, minutes=8, parts=("search", "multi30k"))
    search, multi30k = json.loads(out.read_text())["processes"]
    assert search["status"] == "failed: exit 1"
    assert (multi30k["status"], multi30k["rows"]) == ("timed out", [{"steps": 8000}])
    assert multi30k["facts"] == {"device": "card"}


def test_the_table_has_no_lists():
    rows = [{"steps": 8000, "loss": 1.5, "memory": None, "evaluations": [[1, 2.0]]}]
    record = {"part": "x", "arguments": [], "status": "finished", "seconds": 1.0, "rows": rows}
    assert "| 8,000 | 1.5 |  |" in run.format_process(record).splitlines()
    assert "evaluations" not in run.format_process(record)
