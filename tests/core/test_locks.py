"""Locks end with their holder, are shared with a child process, and name their holder."""

import errno
import fcntl
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from regard.core import locks

HOLD = """
import sys
from pathlib import Path
from regard.core import locks
with locks.acquire(Path(sys.argv[1])) as lock:
    lock.describe("20261120-101643")
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def lock_file(tmp_path) -> Path:
    return tmp_path / "quickstart" / "lock"


@pytest.fixture
def holder(lock_file):
    """Another process that holds the lock until its standard input is closed."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock_file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_lock_of_another_process_is_refused(holder, lock_file):
    assert locks.is_locked(lock_file)
    assert locks.read_holder(lock_file)["pid"] == holder.pid
    assert locks.read_holder(lock_file)["run"] == "20261120-101643"
    with pytest.raises(BlockingIOError):
        locks.acquire(lock_file)


def test_wait_ends_with_the_holder(holder, lock_file):
    waits: list[bool] = []

    def release() -> None:
        waits.append(True)
        holder.stdin.close()

    with locks.acquire(lock_file, timeout=None, on_wait=release):
        assert locks.is_locked(lock_file)
    assert waits == [True]


def test_kill_of_the_holder_frees_the_lock(holder, lock_file):
    holder.kill()
    holder.wait(20)
    assert not locks.is_locked(lock_file)
    with locks.acquire(lock_file) as lock:
        lock.describe("next")
        assert locks.read_holder(lock_file)["run"] == "next"


def test_child_process_keeps_the_lock_after_a_release(lock_file):
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with locks.acquire(lock_file) as lock:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[lock.descriptor])
    assert locks.is_locked(lock_file)
    child.kill()
    child.wait()
    child.stdin.close()
    assert not locks.is_locked(lock_file)


def test_timeout_covers_a_brief_holder(lock_file):
    brief = locks.acquire(lock_file)
    threading.Timer(0.1, brief.release).start()
    locks.acquire(lock_file, timeout=20).release()


def test_lock_file_that_was_replaced_is_not_acquired(lock_file, monkeypatch):
    flock, attempts = fcntl.flock, []

    def remove_and_lock(descriptor, mode):
        if not attempts:
            lock_file.unlink()  # by the previous holder
        attempts.append(mode)
        flock(descriptor, mode)

    monkeypatch.setattr(fcntl, "flock", remove_and_lock)
    with locks.acquire(lock_file):
        assert lock_file.exists()
    assert len(attempts) == 2


def test_lock_of_an_existing_file_is_shared_among_readers(tmp_path):
    file = tmp_path / "saved_model.pb"
    with pytest.raises(FileNotFoundError):
        locks.acquire_existing(file)
    file.write_bytes(b"graph")
    with (
        locks.acquire_existing(file, shared=True),
        locks.acquire_existing(file, shared=True),
        pytest.raises(BlockingIOError),
    ):
        locks.acquire_existing(file)
    locks.acquire_existing(file).release()
    assert file.read_bytes() == b"graph"


def test_locks_are_those_that_nfs_supports(tmp_path, monkeypatch):
    """Exclusive locks need a descriptor for writing, shared ones one for reading, both a file."""
    flock, modes = fcntl.flock, []

    def record(descriptor, mode):
        assert stat.S_ISREG(os.fstat(descriptor).st_mode)
        modes.append((mode & ~fcntl.LOCK_NB, fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE))
        flock(descriptor, mode)

    monkeypatch.setattr(fcntl, "flock", record)
    with locks.acquire(tmp_path / "lock"):
        assert locks.is_locked(tmp_path / "lock")
    locks.acquire_existing(tmp_path / "lock").release()
    locks.acquire_existing(tmp_path / "lock", shared=True).release()
    exclusive, shared = (fcntl.LOCK_EX, os.O_RDWR), (fcntl.LOCK_SH, os.O_RDONLY)
    assert modes == [exclusive, shared, exclusive, shared]


def test_two_processes_of_this_host_have_one_id():
    command = [sys.executable, "-c", "from regard.core import locks; print(locks.host_id())"]
    assert subprocess.check_output(command, text=True).strip() == locks.host_id() != ""


def test_file_system_without_locks(lock_file, monkeypatch):
    def fail(descriptor, mode):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(locks.LocksUnsupportedError):
        locks.acquire(lock_file)
    assert not locks.is_locked(lock_file)


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_unreadable_holder_is_empty(lock_file, content):
    lock_file.parent.mkdir()
    if content is not None:
        lock_file.write_text(content)
    assert locks.read_holder(lock_file) == {}
