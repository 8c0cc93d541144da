"""A process that trains one job: its errors and its end."""

import pickle
import signal
import subprocess

import pytest

from regard.components.trainer import job_process
from regard.core.errors import UserError


@pytest.fixture
def run_job(tmp_path, monkeypatch):
    """Return a function that runs a job in this process, and returns its status and its error."""
    monkeypatch.setattr(job_process, "end_with_parent", lambda: None)
    handler = signal.getsignal(signal.SIGINT)

    def run(content, work):
        job_file, error_file = tmp_path / "job.json", tmp_path / "error"
        job_file.write_text(content)
        status = job_process.main([str(job_file), str(error_file)], work)
        error = pickle.loads(error_file.read_bytes()) if error_file.exists() else None
        return status, error

    yield run
    signal.signal(signal.SIGINT, handler)


def test_a_job_is_read_from_its_file(run_job):
    contents = []
    assert run_job("a job", contents.append) == (0, None)
    assert contents == ["a job"]


@pytest.mark.parametrize(
    ("content", "error", "has_traceback"),
    [
        ("a job", ValueError("wrong"), True),
        ("", ValueError("wrong"), True),
        ("a job", UserError("wrong", "training.seed"), True),
        ("", UserError("wrong", "training.seed"), False),  # `regard worker` prints it
    ],
)
def test_an_error_is_written_for_the_process_that_waits(
    run_job, capsys, content, error, has_traceback
):
    def work(_):
        raise error

    status, stored_error = run_job(content, work)
    assert status == 1
    assert type(stored_error) is type(error)
    assert getattr(stored_error, "where", None) == getattr(error, "where", None)
    assert ("Traceback" in capsys.readouterr().err) == has_traceback


def test_run_process_raises_the_error_of_the_process():
    """``fnmatch`` stands for a module that ends without reading its job."""
    job_process.run_process("fnmatch", "a job", "does nothing")
    with pytest.raises(RuntimeError, match=r"The process that does nothing .* status 1"):
        job_process.run_process("no_such_module", "a job", "does nothing")


@pytest.mark.parametrize(
    ("script", "text"),
    [("kill -9 $$", "training.batch_tokens"), ("kill -6 $$", "SIGABRT"), ("exit 7", "status 7")],
)
def test_exit_messages(script, text):
    status = subprocess.run(["sh", "-c", script], check=False).returncode
    assert text in str(job_process.ProcessExit(status, "trains"))


@pytest.mark.parametrize("deterministic", [False, True])
def test_the_environment_of_jax_keeps_what_the_user_has_set(deterministic):
    user = {
        "XLA_FLAGS": "--xla_a=1",
        "JAX_COMPILATION_CACHE_DIR": "/cache",
        "KERAS_BACKEND": "tensorflow",
        "HOME": "/home/user",
    }
    environment = job_process.jax_environment(user, deterministic)
    assert environment["KERAS_BACKEND"] == "jax"
    assert environment["HOME"] == user["HOME"]
    assert environment["JAX_COMPILATION_CACHE_DIR"] == user["JAX_COMPILATION_CACHE_DIR"]
    flags = environment["XLA_FLAGS"].split()
    assert flags[0] == "--xla_a=1"
    assert ("--xla_gpu_deterministic_ops=true" in flags) == deterministic
