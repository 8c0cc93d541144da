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

from regard.components.common import run_record
from regard.components.common.run_progress import Progress
from regard.core import locks
from regard.pipeline.runs import store, supervise
from regard.pipeline.workspace import Workspace
from tests.processes import is_alive, wait_for

FAKE = str(Path(__file__).with_name("fake_worker.py"))
ROOT = Path(__file__).resolve().parents[2]


class Recorder:
    """Records events and messages."""

    def __init__(self) -> None:
        self.events: list[dict] = []
        self.messages: list[str] = []

    def event(self, event, state) -> None:
        self.events.append(event)

    def refresh(self, state) -> None:
        pass

    def say(self, text) -> None:
        self.messages.append(text)


@pytest.fixture
def created(tmp_path):
    workspace = Workspace(tmp_path)
    return store.create(workspace.pipeline("tiny")), workspace


def _supervise(created, how, **options):
    run, _ = created
    state, view = Progress(["CorpusGen", "Trainer", "Pusher"]), Recorder()
    ending = supervise.supervise([sys.executable, FAKE, how], run, state, view, **options)
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


def test_events_and_output_of_the_worker(created):
    ending, state, view = _supervise(created, "ok")
    assert ending == supervise.Ending(0, interrupted=False)
    assert [node.state for node in state.nodes.values()] == ["cached", "done", "done"]
    assert view.events[0]["text"] == "importing"
    assert "is busy: ok" in created[0].log.read_text()


@pytest.mark.parametrize("how", ["ok", "crash", "user"])
def test_temporary_files_are_removed(created, tmp_path, monkeypatch, how):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    _supervise(created, how)
    (left,) = re.findall(r"^left (.*)$", created[0].log.read_text(), re.MULTILINE)
    assert left.startswith(f"{tmp_path}/t/regard-")
    assert list((tmp_path / "t").iterdir()) == []


def test_temporary_files_of_killed_runs_are_removed(created, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    other = store.create(created[1].pipeline("other"))
    for run in (created[0], created[0], other):
        folder = supervise._scratch_folder(run)
        folder._finalizer.detach()  # as if this process had been killed
        (Path(folder.name) / "file").touch()
    mine = Path(supervise._scratch_folder(created[0]).name + "-mine")
    (mine / "notes").mkdir(parents=True)
    _supervise(created, "ok")
    assert set((tmp_path / "t").iterdir()) == {Path(folder.name), mine}
    assert (mine / "notes").is_dir()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_worker(created, number):
    before = signal.getsignal(number)
    thread = _signal_soon(number)
    ending, state, view = _supervise(created, "slow")
    thread.join()
    assert ending == supervise.Ending(130, interrupted=True)
    assert state.nodes["Trainer"].state == "stopped"
    assert any("Stopping" in text for text in view.messages)
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(
    ("numbers", "grace_seconds"),
    # With the long grace period only the second signal can end the worker.
    [([signal.SIGINT] * 2, 3600), ([signal.SIGINT], 0.5)],
)
def test_unresponsive_worker_is_killed(created, numbers, grace_seconds):
    thread = _signal_soon(*numbers)
    ending, _, _ = _supervise(created, "deaf", grace_seconds=grace_seconds)
    thread.join()
    assert ending == supervise.Ending(-signal.SIGKILL, interrupted=True)


PARENT = """
import sys
from pathlib import Path
from regard.pipeline.runs import store
from regard.core import locks
from regard.pipeline.cli.rendering.live import TerminalDisplay
from regard.components.common.run_progress import Progress
from regard.pipeline.runs import supervise
from regard.pipeline.workspace import Workspace, lock_pipeline
from rich.console import Console

workspace = Workspace(Path(sys.argv[1]))
paths = workspace.pipeline("tiny")
with lock_pipeline(paths.lock) as lock:
    run = store.create(paths)
    lock.describe(run.id)
    with TerminalDisplay(Console()).view("tiny", str(run.log)) as view:
        supervise.supervise(
            [sys.executable, sys.argv[2], sys.argv[3]], run, Progress([]), view,
            lock.descriptor,
        )
"""


@pytest.fixture
def parent(tmp_path):
    """Starts a process that supervises a fake worker, and waits until it is busy."""
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

        wait_for(busy)
        return process, int(busy()[0].split()[1])

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


def test_worker_ends_with_a_killed_parent(parent, tmp_path):
    process, worker = parent("watch")
    assert is_alive(worker)
    process.kill()
    process.wait()
    wait_for(lambda: not is_alive(worker))
    paths = Workspace(tmp_path).pipeline("tiny")
    assert not locks.is_locked(paths.lock)
    (record,) = store.listing(Workspace(tmp_path))
    assert record.status == run_record.KILLED


def test_worker_keeps_the_lock_of_a_killed_parent(parent, tmp_path):
    process, worker = parent("deaf")  # does not end with its parent
    try:
        process.kill()
        process.wait()
        assert locks.is_locked(Workspace(tmp_path).pipeline("tiny").lock)
    finally:
        os.kill(worker, signal.SIGKILL)
    wait_for(lambda: not locks.is_locked(Workspace(tmp_path).pipeline("tiny").lock))


def test_worker_command_and_environment(created, monkeypatch):
    run, workspace = created
    command = supervise.worker_command(run)
    assert command[1:] == ["-m", "regard.pipeline.runs.worker", str(run.directory)]
    monkeypatch.setenv("PYTHONPATH", "/mine")
    environment = supervise.worker_environment(run)
    assert environment["REGARD_EVENTS"] == str(run.events)
    assert environment["REGARD_HOME"] == str(workspace.home)
    assert environment["PYTHONPATH"].endswith("/mine")
