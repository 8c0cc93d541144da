"""Background writes; concurrent runs: the same training waits, checkpoints in use remain."""

import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from regard.components.trainer.checkpoint import (
    Checkpoints,
    NoCheckpoints,
    TrainState,
    checkpoint_lock,
)
from regard.core import owned_folders
from tests.processes import wait_for

_HOLD = """
import sys
from regard.components.trainer.checkpoint import checkpoint_lock
with checkpoint_lock(sys.argv[1]):
    print("locked", flush=True)
    sys.stdin.read()
"""


def make_checkpoint(folder, mtime):
    owned_folders.create(folder, owned_folders.CHECKPOINTS)
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


def test_a_folder_that_another_run_removes_meanwhile_is_no_error(tmp_path):
    (tmp_path / "gone").symlink_to(tmp_path / "removed")  # listed, but it does not exist
    make_checkpoint(tmp_path / "run0", 1000)
    Checkpoints(tmp_path / "run1").prune_others(keep=0)
    assert not (tmp_path / "run0").exists()


def test_only_folders_with_the_mark_are_pruned(tmp_path):
    """The parent may be the working directory, or a folder of the user."""
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("mine")
    (tmp_path / "earlier").mkdir()  # of a version of Regard that wrote no mark
    (tmp_path / "earlier" / "last.npz").write_bytes(b"state")
    make_checkpoint(tmp_path / "elsewhere" / "run", 1000)
    (tmp_path / "linked").symlink_to(tmp_path / "elsewhere" / "run")
    owned_folders.create(tmp_path / "search", owned_folders.SEARCH)
    (tmp_path / "imitation").mkdir()
    mark = owned_folders.mark_name(owned_folders.CHECKPOINTS)
    (tmp_path / "imitation" / mark).symlink_to(tmp_path / "elsewhere" / "run" / mark)
    shutil.copytree(tmp_path / "elsewhere" / "run", tmp_path / "backup")
    names = sorted(path.name for path in tmp_path.iterdir())
    make_checkpoint(tmp_path / "old", 1000)
    Checkpoints(tmp_path / "new").prune_others(keep=0)
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert (tmp_path / "elsewhere" / "run" / "last.npz").exists()
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "mine"


def test_the_mark_is_written_when_the_folder_is_locked(tmp_path):
    with checkpoint_lock(tmp_path / "run"):
        assert owned_folders.is_owned(tmp_path / "run", owned_folders.CHECKPOINTS)
    (tmp_path / "mine" / "notes").mkdir(parents=True)
    with checkpoint_lock(tmp_path / "mine"):
        assert not owned_folders.is_owned(tmp_path / "mine", owned_folders.CHECKPOINTS)


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


@pytest.fixture
def blocked_writes(monkeypatch):
    """Files are written only after ``release`` is set; ``started`` lists the checkpoints' steps."""
    savez, release, started = np.savez, threading.Event(), []

    def write(file, **arrays):
        started.append(json.loads(str(arrays["state"]))["step"])
        assert release.wait(60)
        savez(file, **arrays)

    monkeypatch.setattr(np, "savez", write)
    yield SimpleNamespace(release=release, started=started)
    release.set()


def read(path):
    with np.load(path) as file:
        return float(file["v0"]), json.loads(str(file["state"]))["step"]


def scalar_model(value):
    """A model with a single weight."""
    weight = keras.Variable(np.float32(value))
    return SimpleNamespace(
        variables=[weight], weights=[weight], optimizer=SimpleNamespace(variables=[])
    )


def test_a_checkpoint_has_the_state_at_its_start(tmp_path, blocked_writes):
    model, state, checkpoints = scalar_model(1), TrainState(step=1), Checkpoints(tmp_path)
    checkpoints.save(model, state)
    model.weights[0].assign(2.0)  # as the next update does, in place
    state.step = 2
    checkpoints.check()  # neither waits nor fails
    assert not (tmp_path / "last.npz").exists()
    blocked_writes.release.set()
    checkpoints.close()
    assert read(tmp_path / "last.npz") == (1.0, 1)


def test_the_next_checkpoint_waits_for_the_last_one(tmp_path, blocked_writes):
    """So there is one copy of the state at most, and the files are written in order."""
    model, checkpoints = scalar_model(1), Checkpoints(tmp_path)
    checkpoints.save(model, TrainState(step=1))
    wait_for(lambda: blocked_writes.started == [1])
    thread = threading.Thread(target=checkpoints.save, args=(model, TrainState(step=2)))
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    model.weights[0].assign(2.0)  # the copy is made after the wait
    blocked_writes.release.set()
    thread.join()
    checkpoints.save_best(model, TrainState(step=3))
    checkpoints.close()
    assert blocked_writes.started == [1, 2, 3]
    names = ("previous", "last", "best")
    assert [read(tmp_path / f"{name}.npz") for name in names] == [(1.0, 1), (2.0, 2), (2.0, 3)]
    assert len(list(tmp_path.iterdir())) == 3


def test_a_failed_write_names_the_file_once(tmp_path, monkeypatch):
    model, checkpoints = scalar_model(1), Checkpoints(tmp_path)
    checkpoints.save(model, TrainState(step=1))
    checkpoints.close()

    def fail(file, **arrays):
        file.write(b"PK")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", fail)
        checkpoints.save(model, TrainState(step=2))
        with pytest.raises(OSError, match="No space left") as caught:
            checkpoints.close()
    assert caught.value.filename == str(tmp_path / "last.npz")
    checkpoints.check()
    assert read(tmp_path / "previous.npz") == (1.0, 1)
    assert len(list(tmp_path.iterdir())) == 1
    checkpoints.save(model, TrainState(step=3))
    checkpoints.close()
    assert read(tmp_path / "last.npz") == (1.0, 3)
