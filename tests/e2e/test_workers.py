"""Two workers on one machine: one is killed, both restart, and the training resumes."""

import contextlib
import json
import os
import signal
import socket

import pytest

from tests.e2e.test_faults import wait_for_step


def worker_configurations():
    """The TF_CONFIG of two workers."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(2)]
        for open_socket in sockets:
            open_socket.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{open_socket.getsockname()[1]}" for open_socket in sockets]
    return [
        json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": i}})
        for i in range(2)
    ]


def start(shell, config):
    """Start the chief's run and the other worker."""
    processes = []
    for tf_config, arguments in zip(
        worker_configurations(), (("run", config), ("worker",)), strict=True
    ):
        shell.environment["TF_CONFIG"] = tf_config
        processes.append(shell.start(*arguments, start_new_session=True))
    return processes


@pytest.mark.slow
def test_workers_resume_after_a_kill(shell):
    config = shell.configure(epochs=60)
    path = shell.folder / config
    path.write_text(path.read_text().replace("training:", "training:\n  devices: workers"))
    chief, worker = start(shell, config)
    wait_for_step(shell, chief, 40)
    os.killpg(worker.pid, signal.SIGKILL)
    worker.communicate(timeout=60)
    out, err = chief.communicate(timeout=120)
    assert chief.returncode == 2
    assert "connection between the workers is lost" in out + err
    assert "resumes from its last checkpoint" in out + err

    chief, worker = start(shell, config)
    out, err = chief.communicate(timeout=500)
    assert chief.returncode in (0, 3), out + err  # 3: the model was rejected
    worker.communicate(timeout=60)
    assert worker.returncode == 0
    texts = [event.get("text", "") for event in shell.events()]
    assert any("resumed at step" in text for text in texts)
    assert any("2 workers train together" in text for text in texts)
    (record,) = shell.home.glob("pipelines/tiny/artifacts/Trainer/model_run/*/training.json")
    training = json.loads(record.read_text())
    assert training["devices"] == 2
    assert training["stop_reason"] == "max_epochs: 60"
