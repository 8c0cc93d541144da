"""TF_CONFIG, and errors of worker processes; `tests/e2e/test_workers.py` runs whole trainings."""

import json
import signal
import socket

import pytest

from regard.components.trainer import distributed_worker, job_process
from regard.components.trainer.distributed_worker import WorkerSpec
from regard.core.errors import UserError

WORKERS = {"worker": ["a:1", "b:2"]}


def environment(workers=WORKERS, kind="worker", index=1):
    return {"TF_CONFIG": json.dumps({"cluster": workers, "task": {"type": kind, "index": index}})}


def test_worker_spec():
    spec = WorkerSpec.from_environment(environment())
    assert (spec.addresses, spec.index, spec.is_chief) == (("a:1", "b:2"), 1, False)
    assert WorkerSpec.from_environment(environment(index=0)).is_chief
    assert WorkerSpec.from_environment(environment(index="1")).index == 1
    addresses = {"worker": ["[::1]:1", "[::1]:2"]}
    assert WorkerSpec.from_environment(environment(addresses)).addresses[0] == "[::1]:1"


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({}, "not set"),
        ({"TF_CONFIG": "{"}, "Invalid value: Invalid JSON"),
        ({"TF_CONFIG": "[]"}, "Invalid value: "),
        ({"TF_CONFIG": '{"task": {"type": "worker", "index": 0}}'}, "at cluster: Field required"),
        (environment({**WORKERS, "ps": ["c:3"]}), "at cluster.ps"),
        (environment({**WORKERS, "chief": []}), "at cluster.chief"),
        (environment(kind="evaluator"), "at task.type"),
        (environment(kind=["worker"]), "at task.type"),
        (environment(["worker"]), "at cluster"),
        (environment({}), "no worker 1 among 0"),
        (environment(index=2), "no worker 2 among 2"),
        (environment(index=-1), "no worker -1"),
        (environment(index=True), "at task.index"),
        (environment(index=0.9), "at task.index"),
        (environment(index="1_0"), "at task.index"),
        (environment({"worker": "host-a:2222"}), "at cluster.worker"),
        (environment({"worker": [None, {}]}), "at cluster.worker.0"),
        (environment({"worker": ["a:1", "b"]}), "at cluster.worker.1"),
        (environment({"worker": [":1", "b:1"]}), "at cluster.worker.0"),
        (environment({"worker": ["a:1", "b:65536"]}), "Invalid port in 'b:65536'"),
        (environment({"worker": ["a:1", "a:1"]}), "'a:1' is repeated"),
    ],
)
def test_an_invalid_tf_config_is_refused(environ, message):
    with pytest.raises(UserError, match=message) as error:
        WorkerSpec.from_environment(environ)
    assert error.value.where == "TF_CONFIG"
    assert error.value.remedy


def test_only_worker_0_runs_the_pipeline(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", environment(index=1)["TF_CONFIG"])
    with pytest.raises(UserError, match="This is worker 1") as error:
        distributed_worker.run_chief("{}")
    assert "regard worker" in error.value.remedy
    monkeypatch.setenv("TF_CONFIG", environment(index=0)["TF_CONFIG"])
    with pytest.raises(UserError, match="the chief") as error:
        distributed_worker.run_worker("jax")
    assert "regard run" in error.value.remedy


TF_MESSAGE = """Graph execution error:

Detected at node CollectiveReduceV2 defined at (most recent call last):
<stack traces unavailable>
Collective ops is aborted by: failed to connect to all addresses; last error: b:2
\t [[{{node CollectiveReduceV2}}]] [Op:__inference__step_1]"""


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (TF_MESSAGE, "Collective ops is aborted by: failed to connect"),
        ("Socket closed", "Socket closed"),
        ("", "no reason given"),
    ],
)
def test_a_lost_connection_names_its_cause(message, cause):
    error = distributed_worker.connection_error(message)
    assert f"lost: {cause}" in error.message


@pytest.mark.parametrize(
    ("status", "error"),
    [(-signal.SIGABRT, UserError), (-signal.SIGSEGV, job_process.ProcessExit)],
)
def test_jax_aborts_the_workers_of_a_lost_chief(monkeypatch, status, error):
    def end(module, job, purpose, environment):
        raise job_process.ProcessExit(status, purpose)

    monkeypatch.setattr(job_process, "run_process", end)
    monkeypatch.setenv("TF_CONFIG", environment(index=1)["TF_CONFIG"])
    with pytest.raises(error):
        distributed_worker.run_worker("jax")


@pytest.mark.slow
def test_an_error_of_the_worker_process_is_raised_by_the_chief(monkeypatch, capfd):
    """A chief without other workers, and a job without a configuration."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{one.getsockname()[1]}"
    monkeypatch.setenv("TF_CONFIG", environment({"worker": [address]}, index=0)["TF_CONFIG"])
    with pytest.raises(ValueError, match="TrainingJob"):
        distributed_worker.run_chief("{}")
    assert "Traceback" in capfd.readouterr().err  # for the log


def test_the_port_of_the_chief_must_be_free():
    with socket.socket() as server:
        server.bind(("", 0))
        server.listen()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        config = {"cluster": {"worker": [address]}, "task": {"type": "worker", "index": 0}}
        with pytest.raises(UserError, match="cannot listen on port") as error:
            distributed_worker.check_chief({"TF_CONFIG": json.dumps(config)}, "jax")
    assert error.value.where == "TF_CONFIG"
