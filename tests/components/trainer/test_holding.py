"""Runs side by side: none takes another one's checkpoints away, and a twin waits."""

import errno
import fcntl
import json
import os
import subprocess
import sys
import time

import pytest

from components.trainer.checkpoint import Checkpoints
from components.trainer.holding import held

_HOLD = """
import sys
from components.trainer.holding import held
with held(sys.argv[1], "Trainer"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder():
    """Starts processes that hold a folder until their input ends."""
    started = []

    def start(folder, wait=True):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process = subprocess.Popen([sys.executable, "-c", _HOLD, str(folder)], **pipes)
        started.append(process)
        if wait:
            assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def made(folder, mtime):
    folder.mkdir(parents=True)
    (folder / "last.npz").write_bytes(b"state")
    os.utime(folder, (mtime, mtime))


def test_what_a_run_works_in_is_not_pruned(tmp_path, holder):
    folders = [tmp_path / f"run{i}" for i in range(5)]
    holder(folders[0])
    for i, folder in enumerate(folders[1:], start=1):
        made(folder, 1000 + i)
    os.utime(folders[0], (1000, 1000))
    Checkpoints(folders[4]).prune_others(keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run0", "run2", "run3", "run4"]


def test_what_a_killed_run_has_left_may_go(tmp_path, holder):
    process = holder(tmp_path / "run0")
    process.kill()
    process.wait()
    Checkpoints(tmp_path / "run1").prune_others(keep=0)
    assert not (tmp_path / "run0").exists()


def test_a_second_run_of_the_same_training_waits(tmp_path, holder, monkeypatch):
    monkeypatch.setenv("REGARD_EVENTS", str(tmp_path / "events"))
    first = holder(tmp_path / "run")
    second = holder(tmp_path / "run", wait=False)
    deadline = time.monotonic() + 20
    while not (tmp_path / "events").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "waiting for another run" in json.loads((tmp_path / "events").read_text())["text"]
    first.stdin.close()
    assert second.stdout.readline() == "held\n"


def test_a_folder_that_goes_away_while_one_waits_is_made_again(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    lock, calls = fcntl.flock, []

    def flock(descriptor, mode):
        if not calls:
            (folder / ".lock").unlink()  # by who held it before
        calls.append(mode)
        lock(descriptor, mode)

    monkeypatch.setattr(fcntl, "flock", flock)
    with held(folder, "Trainer"):
        assert (folder / ".lock").exists()
        assert len(calls) == 2


def test_a_volume_without_locks_is_told(tmp_path, monkeypatch):
    def flock(descriptor, mode):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setenv("REGARD_EVENTS", str(tmp_path / "events"))
    with held(tmp_path / "run", "Trainer"):
        assert "cannot be locked" in (tmp_path / "events").read_text()
    Checkpoints(tmp_path / "other").prune_others(keep=0)
    assert not (tmp_path / "run").exists()
