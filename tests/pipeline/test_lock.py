from __future__ import annotations

import multiprocessing
import os
import threading
import time

import pytest

from components.errors import UserError
from pipeline import lock


def _hold(path, ready, go) -> None:
    with lock.acquire(path) as held:
        held.describe("20261120-101643")
        ready.set()
        go.wait(20)


@pytest.fixture
def other(tmp_path):
    """Another process that holds the lock until it is told to let go."""
    context = multiprocessing.get_context("spawn")
    path, ready, go = tmp_path / "quickstart" / "lock", context.Event(), context.Event()
    process = context.Process(target=_hold, args=(path, ready, go))
    process.start()
    assert ready.wait(20)
    yield path, process, go
    go.set()
    process.join(20)


def test_second_run_is_refused_with_run_and_process(other):
    path, process, _ = other
    with pytest.raises(UserError) as raised:
        lock.acquire(path)
    assert "20261120-101643" in raised.value.message
    assert str(process.pid) in raised.value.message
    assert "quickstart" in raised.value.message
    assert "--wait" in (raised.value.remedy or "")


def test_waiting_run_gets_the_lock_when_the_other_ends(other):
    path, process, go = other
    told: list[dict] = []
    threading.Timer(0.3, go.set).start()
    with lock.acquire(path, wait=True, on_wait=told.append, poll_seconds=0.05):
        assert lock.is_held(path)
    assert [holder["pid"] for holder in told] == [process.pid]


def test_killed_holder_leaves_no_stale_lock(other):
    path, process, _ = other
    process.kill()
    process.join(20)
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
