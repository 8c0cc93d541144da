"""Killed and failed runs leave no folders that nobody reads."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from components import events
from pipeline.runners import worker

ROOT = Path(__file__).resolve().parents[3]
CHILD = """
import importlib, sys
from pathlib import Path
from pipeline.runners import worker
module = importlib.import_module("tiny")
worker.run(lambda: module.make(Path(sys.argv[1])), "local", "killed")
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    folder = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), folder]))
    monkeypatch.setattr(sys, "argv", ["regard"])
    monkeypatch.setenv(events.VARIABLE, str(tmp_path / "events.jsonl"))
    monkeypatch.setenv("REGARD_TINY", str(tmp_path / "what.txt"))
    return importlib.import_module("tiny")


def test_what_a_killed_run_left_goes_at_the_next_one(tiny, tmp_path):
    what, copies = tmp_path / "what.txt", tmp_path / "artifacts" / "Fail" / "copy"
    what.write_text("hang")
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)])
    deadline = time.monotonic() + 90
    while not list(copies.glob("*/half.txt")):
        assert child.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    (left,) = copies.iterdir()

    what.write_text("ok")
    assert worker.run(lambda: tiny.make(tmp_path), "local", "next") == worker.OK
    assert not left.exists()
    (made,) = copies.iterdir()
    assert (made / "copy.txt").exists()
    # What ended well stays, and is taken from the cache.
    assert worker.run(lambda: tiny.make(tmp_path), "local", "third") == worker.OK
    assert (made / "copy.txt").exists()
