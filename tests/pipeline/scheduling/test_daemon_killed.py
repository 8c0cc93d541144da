"""A scheduler that is killed with signal 9 during a run, and started again."""

import os
import signal
import subprocess
import sys
import time

import pytest

from regard.components.common import run_record
from regard.core import locks
from regard.pipeline.scheduling import attempt, state
from tests.pipeline.scheduling import fake_run
from tests.pipeline.scheduling.simulation import FakeDaemon


@pytest.fixture
def hourly(simulation):
    simulation.configure("  every: 1h\n  new_span: true\n")
    return simulation


@pytest.fixture
def kill_daemon(hourly):
    """Kills a daemon, perhaps with its run, and returns the run's id."""

    def kill(outcome: str, with_run: bool) -> str:
        hourly.plan(outcome, "pushed")
        command = [sys.executable, "-m", "tests.pipeline.scheduling.run_daemon"]
        with subprocess.Popen([*command, str(hourly.folder / "tiny.yaml")]) as process:
            try:
                while not (holder := locks.read_holder(hourly.paths.lock)).get("run"):
                    assert process.poll() is None
                    time.sleep(0.02)
                while (open_attempt := hourly.state.attempt) is None or open_attempt.pid is None:
                    time.sleep(0.02)
            finally:
                process.kill()
        if with_run:
            os.kill(holder["pid"], signal.SIGKILL)
        assert hourly.statuses == []
        return holder["run"]

    return kill


def test_a_run_that_survives_is_waited_for(hourly, kill_daemon):
    run = kill_daemon("waits 1.5", with_run=False)
    daemon = hourly.serve(0.5, pace=0.02)
    assert daemon.lines[:2] == [f"waiting for run {run}", f"run {run}: pushed as tiny@1 (1.0 s)"]
    assert hourly.statuses == ["pushed"]


def test_a_run_that_was_killed_too_resumes(hourly, kill_daemon):
    run = kill_daemon("waits", with_run=True)
    daemon = hourly.serve(0.5)
    assert f"run {run}: killed" in daemon.lines
    assert daemon.starting_with("run: ") == [f"run: resuming run {run}, which was killed"]
    assert hourly.statuses == ["killed", "pushed"]


def test_killed_before_the_run_starts(hourly, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(attempt, "start_run", lambda *_: 1 / 0)
        daemon = FakeDaemon(hourly, 1)
        with pytest.raises(ZeroDivisionError), daemon.open():
            daemon.serve()
    assert hourly.state.open_attempt is not None
    daemon = hourly.serve(0.5)
    assert daemon.lines[0] == "the run: ended before it started"
    assert hourly.statuses == ["killed", "pushed"]


def test_a_run_of_unknown_process_is_found_by_its_start(hourly):
    data = state.TrainedData(key="k", groups=[], spans={})

    def status_since(started):
        open_attempt = state.Attempt(key="k", started=started, reason="", data=data)
        return attempt.finish_attempt(hourly.paths, open_attempt, time.time()).status

    started = time.time()
    assert fake_run.main(hourly.folder / "tiny.yaml") == 0
    assert status_since(started) == state.PUSHED
    assert status_since(time.time() + 1) == run_record.KILLED
