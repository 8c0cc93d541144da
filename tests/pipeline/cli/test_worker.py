"""`regard run` and `regard worker` check TF_CONFIG before anything runs."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from regard.core.errors import UserError
from regard.pipeline.cli.rendering.live import TerminalDisplay
from regard.pipeline.runs.launch import RunRequest, run_pipeline
from tests.processes import free_port, is_alive, wait_for

DISPLAY = TerminalDisplay(Console())
CONFIG = """
name: tiny
data: {root: /nowhere, train: train.tsv}
training: {devices: workers}
"""


@pytest.fixture
def config(tmp_path):
    (tmp_path / "tiny.yaml").write_text(CONFIG)
    return tmp_path / "tiny.yaml"


def test_run_requires_the_chief(monkeypatch, config):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(UserError, match="no workers are known"):
        run_pipeline(RunRequest(config), DISPLAY)
    task = {"type": "worker", "index": 1}
    cluster = {"worker": ["a:1", "b:2"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
    for last in (None, "Trainer", "Reporter"):
        with pytest.raises(UserError, match="This is worker 1"):
            run_pipeline(RunRequest(config, last=last), DISPLAY)


@pytest.mark.parametrize("options", [{"tune": True, "last": "Tuner"}, {"last": "preprocess"}])
def test_tf_config_is_not_required_without_the_trainer(monkeypatch, config, options):
    """A trial uses one device."""
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(UserError, match="/nowhere"):  # the next check
        run_pipeline(RunRequest(config, **options), DISPLAY)


def start_worker(folder):
    """Start a worker whose chief does not come; return the command and its waiting process."""
    ports = free_port(), free_port()
    task = {"type": "worker", "index": 1}
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    command = subprocess.Popen(
        [sys.executable, "-m", "regard.pipeline.cli", "worker"],
        env={
            **os.environ,
            "TF_CONFIG": json.dumps({"cluster": cluster, "task": task}),
            "TMPDIR": str(folder),
        },
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: listens(ports[1]))
    children = Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text()
    return command, int(children)


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@pytest.mark.parametrize(
    ("number", "status"),
    [
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_a_worker_that_waits_is_ended_by_a_signal(tmp_path, number, status):
    command, child = start_worker(tmp_path)
    command.send_signal(number)
    try:
        assert command.wait(10) == status
        wait_for(lambda: not is_alive(child), 10)
    finally:
        for process in (command.pid, child):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        command.wait()
    assert number == signal.SIGKILL or not list(tmp_path.glob("regard-*"))
