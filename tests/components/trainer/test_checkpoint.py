"""Concurrent runs: the same training waits, and no checkpoints in use are removed."""

import errno
import fcntl
import json
import os
import subprocess
import sys
import time

import pytest

from regard.components.trainer.checkpoint import Checkpoints, checkpoint_lock

_HOLD = """
import sys
from regard.components.trainer.checkpoint import checkpoint_lock
with checkpoint_lock(sys.argv[1]):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def start_holder():
    """Starts processes that lock a folder until their input ends."""
    processes = []

    def start(folder, wait=True):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process = subprocess.Popen([sys.executable, "-c", _HOLD, str(folder)], **pipes)
        processes.append(process)
        if wait:
            assert process.stdout.readline() == "locked\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def make_checkpoint(folder, mtime):
    folder.mkdir(parents=True)
    (folder / "last.npz").write_bytes(b"state")
    os.utime(folder, (mtime, mtime))


def test_locked_folder_is_not_pruned_until_its_run_is_killed(tmp_path, start_holder):
    folders = [tmp_path / f"run{i}" for i in range(5)]
    process = start_holder(folders[0])
    for i, folder in enumerate(folders[1:], start=1):
        make_checkpoint(folder, 1000 + i)
    os.utime(folders[0], (1000, 1000))
    Checkpoints(folders[4]).prune_others(keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run0", "run2", "run3", "run4"]
    process.kill()
    process.wait()
    Checkpoints(folders[4]).prune_others(keep=0)
    assert [path.name for path in tmp_path.iterdir()] == ["run4"]


def test_second_run_of_the_same_training_waits(tmp_path, start_holder, monkeypatch):
    monkeypatch.setenv("REGARD_EVENTS", str(tmp_path / "events"))
    first = start_holder(tmp_path / "run")
    second = start_holder(tmp_path / "run", wait=False)
    deadline = time.monotonic() + 60
    while not (tmp_path / "events").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "waiting for another run" in json.loads((tmp_path / "events").read_text())["text"]
    first.stdin.close()
    assert second.stdout.readline() == "locked\n"


def test_file_system_without_locks_is_reported(tmp_path, monkeypatch):
    def flock(descriptor, mode):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setenv("REGARD_EVENTS", str(tmp_path / "events"))
    with checkpoint_lock(tmp_path / "run"):
        assert "Cannot lock" in (tmp_path / "events").read_text()
    Checkpoints(tmp_path / "other").prune_others(keep=0)
    assert not (tmp_path / "run").exists()
