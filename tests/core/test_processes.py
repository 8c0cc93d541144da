"""Child processes end with their parent, and with them what they started."""

import os
import signal
import subprocess
import sys

import pytest

from regard.core.processes import (
    ChildProcess,
    child_environment,
    collect_stop_signals,
    describe_exit,
)
from tests.processes import is_alive, wait_for

# Prints its process id and that of a child of its own, and keeps Python's lock like TensorFlow.
CHILD = """
import re, subprocess
from regard.core.processes import end_with_parent
end_with_parent()
grandchild = subprocess.Popen(["sleep", "100"])
import os
print(os.getpid(), grandchild.pid, flush=True)
re.match("(a*)*b", "a" * 100)
"""
PARENT = """
import sys
from pathlib import Path
from regard.core.processes import ChildProcess
ChildProcess([sys.executable, "-c", sys.argv[1]], log=Path(sys.argv[2])).wait()
"""


def test_child_and_grandchild_end_when_the_parent_is_killed(tmp_path):
    log = tmp_path / "log.txt"
    command = [sys.executable, "-c", PARENT, CHILD, str(log)]
    with subprocess.Popen(command, env=child_environment()) as parent:
        wait_for(lambda: log.exists() and log.read_text().endswith("\n"))
        pids = [int(pid) for pid in log.read_text().split()]
        assert all(map(is_alive, pids))
        parent.kill()
    wait_for(lambda: not any(map(is_alive, pids)))


def test_end_of_the_block_kills_the_whole_session(tmp_path):
    log = tmp_path / "log.txt"
    script = "sleep 100 & echo $!; wait"
    with ChildProcess(["sh", "-c", script], log=log) as child:
        wait_for(lambda: log.read_text().endswith("\n"))
        assert child.wait(timeout=0.0) is None
    assert child.poll() == -signal.SIGKILL
    wait_for(lambda: not is_alive(int(log.read_text())))


def test_end_of_the_block_kills_what_a_killed_command_has_left(tmp_path):
    log = tmp_path / "log.txt"
    with ChildProcess(["sh", "-c", "sleep 100 & echo $!; wait"], log=log) as child:
        wait_for(lambda: log.read_text().endswith("\n"))
        os.kill(child.pid, signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    wait_for(lambda: not is_alive(int(log.read_text())))


def test_output_and_log(tmp_path):
    child = ChildProcess(
        ["sh", "-c", "pwd; echo $COLOR >&2; read line || echo closed"],
        log=tmp_path / "log.txt",
        output=tmp_path / "output.txt",
        folder=tmp_path,
        environment={"COLOR": "red"},
        detached=True,
    )
    assert child.wait() == 0
    assert (tmp_path / "output.txt").read_text() == f"{tmp_path}\nclosed\n"
    assert (tmp_path / "log.txt").read_text() == "red\n"


def test_stop_signals_are_collected_and_their_handlers_restored():
    previous = signal.getsignal(signal.SIGTERM)
    with collect_stop_signals() as received:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        wait_for(lambda: len(received) == 2)
    assert received == [signal.SIGTERM, signal.SIGINT]
    assert signal.getsignal(signal.SIGTERM) is previous


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("kill -9 $$", "was killed by signal 9"),
        ("kill -6 $$", "crashed with SIGABRT"),
        ("exit 7", "exited with status 7"),
    ],
)
def test_describe_exit(script, text):
    status = subprocess.run(["sh", "-c", script], check=False).returncode
    assert describe_exit(status).startswith(text)


def test_child_environment_adds_variables_and_finds_the_package(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/mine")
    environment = child_environment(REGARD_HOME="/w")
    assert environment["REGARD_HOME"] == "/w"
    assert environment["PYTHONPATH"].endswith("/mine")
    command = [sys.executable, "-c", "import regard.components.common"]
    subprocess.run(command, env=environment, cwd="/", check=True)
