from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from pipeline import lock, runs
from pipeline.progress import Progress
from pipeline.runners import supervise
from pipeline.workspace import Workspace

FAKE = str(Path(__file__).with_name("fake_worker.py"))
ROOT = Path(__file__).resolve().parents[3]


class Recorder:
    """A view that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[dict] = []
        self.said: list[str] = []

    def event(self, event, state) -> None:
        self.events.append(event)

    def refresh(self, state) -> None:
        pass

    def say(self, text) -> None:
        self.said.append(text)


@pytest.fixture
def made(tmp_path):
    workspace = Workspace(tmp_path)
    return runs.create(workspace.pipeline("tiny")), workspace


def _supervise(made, how, **options):
    run, workspace = made
    state, view = Progress(["CorpusGen", "Trainer", "Pusher"]), Recorder()
    environment = supervise.worker_environment(run, workspace.home)
    command = [sys.executable, FAKE, how]
    ending = supervise.supervise(command, run, state, view, environment=environment, **options)
    return ending, state, view


def _signal_soon(*numbers: int, after: float = 1.0, apart: float = 0.5) -> threading.Thread:
    def send() -> None:
        time.sleep(after)
        for number in numbers:
            os.kill(os.getpid(), number)
            time.sleep(apart)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def _wait_for(condition, seconds: float = 15.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_events_reach_the_state_and_the_view_and_output_the_log(made):
    ending, state, view = _supervise(made, "ok")
    assert ending == supervise.Ending(0, interrupted=False)
    assert [node.state for node in state.nodes.values()] == ["cached", "done", "done"]
    assert view.events[0]["text"] == "importing"
    assert "is busy: ok" in made[0].log.read_text()


@pytest.mark.parametrize("how", ["ok", "crash", "user"])
def test_temporary_files_go_with_the_worker(made, tmp_path, monkeypatch, how):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    _supervise(made, how)
    (left,) = re.findall(r"^left (.*)$", made[0].log.read_text(), re.MULTILINE)
    assert left.startswith(f"{tmp_path}/t/regard-")
    assert list((tmp_path / "t").iterdir()) == []


def test_asked_to_stop_the_worker_ends_by_itself(made):
    before = signal.getsignal(signal.SIGINT)
    thread = _signal_soon(signal.SIGINT)
    ending, state, view = _supervise(made, "slow")
    thread.join()
    assert ending == supervise.Ending(130, interrupted=True)
    assert state.nodes["Trainer"].state == "stopped"
    assert any("Stopping" in text for text in view.said)
    assert signal.getsignal(signal.SIGINT) is before


def test_sigterm_stops_like_ctrl_c(made):
    thread = _signal_soon(signal.SIGTERM)
    ending, _, _ = _supervise(made, "slow")
    thread.join()
    assert ending == supervise.Ending(130, interrupted=True)


def test_second_signal_kills(made):
    thread = _signal_soon(signal.SIGINT, signal.SIGINT)
    started = time.monotonic()
    ending, _, _ = _supervise(made, "deaf")
    thread.join()
    assert ending == supervise.Ending(-signal.SIGKILL, interrupted=True)
    assert time.monotonic() - started < 20


def test_deaf_worker_is_killed_after_the_grace(made):
    thread = _signal_soon(signal.SIGINT)
    ending, _, _ = _supervise(made, "deaf", grace_seconds=0.5)
    thread.join()
    assert ending == supervise.Ending(-signal.SIGKILL, interrupted=True)


PARENT = """
import sys
from pathlib import Path
from pipeline import lock, runs
from pipeline.live import open_view
from pipeline.progress import Progress
from pipeline.runners import supervise
from pipeline.workspace import Workspace
from rich.console import Console

workspace = Workspace(Path(sys.argv[1]))
paths = workspace.pipeline("tiny")
with lock.acquire(paths.lock) as held:
    run = runs.create(paths)
    held.describe(run.id)
    with open_view(Console(), "tiny", str(run.log)) as view:
        supervise.supervise(
            [sys.executable, sys.argv[2], sys.argv[3]], run, Progress([]), view,
            held.descriptor, supervise.worker_environment(run, workspace.home),
        )
"""


@pytest.fixture
def parent(tmp_path):
    """Starts a process that supervises a fake worker, and waits until that is busy."""
    started: list[subprocess.Popen] = []

    def start(how: str) -> tuple[subprocess.Popen, int]:
        process = subprocess.Popen(
            [sys.executable, "-c", PARENT, str(tmp_path), FAKE, how],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        started.append(process)
        logs = tmp_path / "pipelines" / "tiny" / "runs"

        def busy() -> list[str]:
            return [p.read_text() for p in logs.glob("*/log.txt") if "is busy" in p.read_text()]

        assert _wait_for(lambda: bool(busy()))
        return process, int(busy()[0].split()[1])

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


def test_killed_parent_takes_the_worker_with_it(parent, tmp_path):
    process, worker = parent("watch")
    assert _alive(worker)
    process.kill()
    process.wait()
    assert _wait_for(lambda: not _alive(worker))
    paths = Workspace(tmp_path).pipeline("tiny")
    assert not lock.is_held(paths.lock)
    (record,) = runs.listing(Workspace(tmp_path))
    assert record["status"] == runs.KILLED


def test_worker_holds_the_lock_when_its_parent_is_gone(parent, tmp_path):
    process, worker = parent("deaf")  # this one does not watch its parent
    try:
        process.kill()
        process.wait()
        assert lock.is_held(Workspace(tmp_path).pipeline("tiny").lock)
    finally:
        os.kill(worker, signal.SIGKILL)
    assert _wait_for(lambda: not lock.is_held(Workspace(tmp_path).pipeline("tiny").lock))


def test_worker_command_and_environment(made, monkeypatch):
    run, workspace = made
    command = supervise.worker_command(run, workspace.home, "beam", "Trainer", None)
    assert command[1:4] == ["-m", "pipeline.runners.worker", "--watch-stdin"]
    assert command[-2:] == ["--from", "Trainer"]
    assert "--to" not in command
    monkeypatch.setenv("PYTHONPATH", "/mine")
    environment = supervise.worker_environment(run, workspace.home)
    assert environment["REGARD_EVENTS"] == str(run.events)
    assert environment["REGARD_HOME"] == str(workspace.home)
    assert environment["PYTHONPATH"].endswith("/mine")
