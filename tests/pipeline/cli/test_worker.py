"""`regard run` and `regard worker` check TF_CONFIG before anything runs."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from rich.console import Console

from regard.components.common.errors import UserError
from regard.pipeline.cli.rendering.live import TerminalDisplay
from regard.pipeline.cli.worker import worker
from regard.pipeline.run import RunRequest, run_pipeline

DISPLAY = TerminalDisplay(Console())
CONFIG = """
name: tiny
data: {root: /nowhere, train: train.tsv}
training: {devices: workers}
"""


def task(index):
    return json.dumps(
        {"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": index}}
    )


def test_run_requires_the_chief(monkeypatch, tmp_path):
    config = tmp_path / "tiny.yaml"
    config.write_text(CONFIG)
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(UserError, match="no workers are known"):
        run_pipeline(RunRequest(config), DISPLAY)
    monkeypatch.setenv("TF_CONFIG", task(1))
    for last in (None, "Trainer", "Reporter"):
        with pytest.raises(UserError, match="This is worker 1"):
            run_pipeline(RunRequest(config, last=last), DISPLAY)


@pytest.mark.parametrize("options", [{"tune": True, "last": "Tuner"}, {"last": "preprocess"}])
def test_tf_config_is_not_required_without_the_trainer(monkeypatch, tmp_path, options):
    """A trial uses one device."""
    config = tmp_path / "tiny.yaml"
    config.write_text(CONFIG)
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(UserError, match="/nowhere"):  # the next check
        run_pipeline(RunRequest(config, **options), DISPLAY)


def test_worker_must_not_be_the_chief(monkeypatch, capsys):
    monkeypatch.setenv("TF_CONFIG", task(0))
    with pytest.raises(UserError, match="regard run"):
        worker()


def waiting(folder):
    """The command of a worker whose chief does not come, and the process that waits for it."""
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in (one, other)]
    place = {
        "cluster": {"worker": [f"127.0.0.1:{port}" for port in ports]},
        "task": {"type": "worker", "index": 1},
    }
    command = subprocess.Popen(
        [sys.executable, "-m", "regard.pipeline.cli", "worker"],
        env={**os.environ, "TF_CONFIG": json.dumps(place), "TMPDIR": str(folder)},
        stderr=subprocess.DEVNULL,
    )
    until(lambda: listens(ports[1]))
    (child,) = children(command.pid)
    return command, child


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def children(process):
    with open(f"/proc/{process}/task/{process}/children", encoding="utf-8") as file:
        return [int(one) for one in file.read().split()]


def ended(process):
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"  # ended, whoever is to know it
    except FileNotFoundError:
        return True


def until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_a_worker_that_waits_is_ended_by_a_signal(tmp_path, number, status):
    command, child = waiting(tmp_path)
    command.send_signal(number)
    try:
        assert command.wait(10) == status
        until(lambda: ended(child), 10)
    finally:
        for process in (command.pid, child):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        command.wait()
    assert number == signal.SIGKILL or not list(tmp_path.glob("regard-*"))
