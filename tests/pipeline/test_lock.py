from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from components.errors import UserError
from pipeline import lock

HOLD = """
import sys
from pathlib import Path
from pipeline import lock
with lock.acquire(Path(sys.argv[1])) as held:
    held.describe("20261120-101643")
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path):
    """Another process that holds the lock until its standard input is closed."""
    path = tmp_path / "quickstart" / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        cwd=Path(__file__).resolve().parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "ready\n"
        yield path, process
        process.kill()


def test_second_run_is_refused_with_run_and_process(other):
    path, process = other
    with pytest.raises(UserError) as raised:
        lock.acquire(path)
    assert "20261120-101643" in raised.value.message
    assert str(process.pid) in raised.value.message
    assert "quickstart" in raised.value.message
    assert "--wait" in (raised.value.remedy or "")


def test_waiting_run_gets_the_lock_when_the_other_ends(other):
    path, process = other
    told: list[dict] = []
    threading.Timer(0.3, process.stdin.close).start()
    with lock.acquire(path, wait=True, on_wait=told.append, poll_seconds=0.05):
        assert lock.is_held(path)
    assert [holder["pid"] for holder in told] == [process.pid]


def test_killed_holder_leaves_no_stale_lock(other):
    path, process = other
    process.kill()
    process.wait(20)
    with lock.acquire(path) as held:
        held.describe("next")
        assert lock.holder(path)["run"] == "next"


def test_lock_is_free_after_the_block(tmp_path):
    path = tmp_path / "lock"
    assert not lock.is_held(path)
    with lock.acquire(path):
        assert lock.is_held(path)
    assert not lock.is_held(path)


def test_a_listing_does_not_make_a_run_refuse(tmp_path):
    path = tmp_path / "lock"
    path.touch()
    descriptor = os.open(path, os.O_RDONLY)
    assert lock._try_lock(descriptor, path, lock.fcntl.LOCK_SH)
    threading.Timer(0.1, os.close, [descriptor]).start()
    lock.acquire(path).release()


def test_refusal_does_not_take_long(other):
    started = time.monotonic()
    with pytest.raises(UserError):
        lock.acquire(other[0])
    assert time.monotonic() - started < 5


def test_folder_that_cannot_be_made_is_a_user_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be written"):
        lock.acquire(tmp_path / "file" / "quickstart" / "lock")


def test_broken_holder_file_is_no_holder(tmp_path):
    (tmp_path / "lock").write_text("{")
    assert lock.holder(tmp_path / "lock") == {}
