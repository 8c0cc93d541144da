"""Concurrent runs: the same training waits, and no checkpoints in use are removed."""

import errno
import fcntl
import os
import subprocess
import sys
import threading

import keras
import pytest

from regard.components.trainer.checkpoint import (
    Checkpoints,
    NoCheckpoints,
    TrainState,
    checkpoint_lock,
)
from tests.processes import wait_for

_HOLD = """
import sys
from regard.components.trainer.checkpoint import checkpoint_lock
with checkpoint_lock(sys.argv[1]):
    print("locked", flush=True)
    sys.stdin.read()
"""


def make_checkpoint(folder, mtime):
    folder.mkdir(parents=True)
    (folder / "last.npz").write_bytes(b"state")
    os.utime(folder, (mtime, mtime))


@pytest.mark.slow
def test_locked_folder_is_not_pruned_until_its_run_is_killed(tmp_path):
    folders = [tmp_path / f"run{i}" for i in range(5)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", _HOLD, str(folders[0])], **pipes) as process:
        assert process.stdout.readline() == "locked\n"
        for i, folder in enumerate(folders[1:], start=1):
            make_checkpoint(folder, 1000 + i)
        os.utime(folders[0], (1000, 1000))
        Checkpoints(folders[4]).prune_others(keep=2)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["run0", "run2", "run3", "run4"]
        process.kill()
    Checkpoints(folders[4]).prune_others(keep=0)
    assert [path.name for path in tmp_path.iterdir()] == ["run4"]


def test_second_run_of_the_same_training_waits(tmp_path, monkeypatch):
    """Locks belong to open files, so a thread waits like another process."""
    log = tmp_path / "events"
    log.touch()
    monkeypatch.setenv("REGARD_EVENTS", str(log))
    is_locked = threading.Event()

    def second_run():
        with checkpoint_lock(tmp_path / "run"):
            is_locked.set()

    with checkpoint_lock(tmp_path / "run"):
        thread = threading.Thread(target=second_run, daemon=True)
        thread.start()
        wait_for(lambda: "waiting for another run" in log.read_text())
        assert not is_locked.is_set()
    thread.join(60)
    assert is_locked.is_set()


def test_file_system_without_locks_is_reported(tmp_path, monkeypatch):
    def flock(descriptor, mode):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setenv("REGARD_EVENTS", str(tmp_path / "events"))
    with checkpoint_lock(tmp_path / "run"):
        assert "Cannot lock" in (tmp_path / "events").read_text()
    Checkpoints(tmp_path / "other").prune_others(keep=0)
    assert not (tmp_path / "run").exists()


def test_a_worker_that_is_not_the_chief_changes_no_files_of_the_chief(tmp_path):
    files = {"last.npz": b"1", "previous.npz": b"0", "step-7.npz": b"7", ".last.npz.tmp": b"2"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    model, checkpoints = keras.Sequential(), NoCheckpoints(tmp_path)
    assert checkpoints.restore(model) is None
    checkpoints.save(model, TrainState())
    checkpoints.save_best(model, TrainState())
    checkpoints.save_snapshot(model, TrainState())
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files
