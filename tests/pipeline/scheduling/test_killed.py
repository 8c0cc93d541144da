"""A scheduler that is killed with signal 9 while a run goes on, and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from pipeline import lock
from tests.pipeline.scheduling.desk import START, Desk, FastClock


@pytest.fixture
def desk(tmp_path, monkeypatch):
    made = Desk(tmp_path, monkeypatch)
    made.configure("  every: 1h\n  new_span: true\n")
    return made


class TestKilled:
    """A scheduler in a process of its own, killed with signal 9 while a run goes on."""

    @pytest.fixture
    def killed(self, desk):
        def kill(what: str, also_the_run: bool) -> str:
            desk.plan(what, "pushed")
            command = [sys.executable, "-m", "tests.pipeline.scheduling.keep"]
            with subprocess.Popen([*command, str(desk.folder / "tiny.yaml")]) as process:
                try:
                    while not (holder := lock.holder(desk.paths.lock)).get("run"):
                        assert process.poll() is None
                        time.sleep(0.02)
                    while "pid" not in (desk.known.attempt or {}):
                        time.sleep(0.02)
                finally:
                    process.kill()
            if also_the_run:
                os.kill(holder["pid"], signal.SIGKILL)
            assert desk.statuses == []
            return holder["run"]

        return kill

    def test_its_run_goes_on_and_counts(self, desk, killed):
        run = killed("waits 1.5", False)
        lines = desk.serve(0.5, pace=0.02)
        assert lines.said[:2] == [
            f"waiting for run {run}, which goes on",
            f"run {run}: pushed as tiny@1 (1.0 s)",
        ]
        assert desk.statuses == ["pushed"]

    def test_a_run_that_went_with_it_is_made_again(self, desk, killed):
        run = killed("waits", True)
        lines = desk.serve(0.5)
        assert lines.said[0] == f"run {run}: killed"
        assert lines.of("run: ") == [f"run: run {run} was killed, and goes on"]
        assert desk.statuses == ["killed", "pushed"]

    def test_before_the_run_has_begun(self, desk):
        clock = FastClock(START, 1)
        made, _ = desk.scheduler(clock)
        made._command = Bomb()
        with made.held(), pytest.raises(ZeroDivisionError):
            made.serve()
        assert desk.known.open is not None
        lines = desk.serve(0.5)
        assert lines.said[0] == "the run: ended before it began"
        assert desk.statuses == ["killed", "pushed"]


class Bomb(list):
    """A command line at which the process ends, as at a kill."""

    def __iter__(self):
        raise ZeroDivisionError
