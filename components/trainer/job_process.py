"""A process that trains one job: its start, its errors and its end."""

import contextlib
import os
import pickle
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from regard.core.errors import UserError, pickle_error
from regard.core.files import atomic_write
from regard.core.processes import ChildProcess, describe_exit, end_with_parent


class ProcessExit(RuntimeError):
    """The end of a process that has left no error.

    Attributes:
        status: its exit status; a negative number is that of a signal.
    """

    def __init__(self, status: int, purpose: str):
        text = f"The process that {purpose} {describe_exit(status)}."
        if status == -signal.SIGKILL:
            text += " Give the machine more memory, or reduce training.batch_tokens."
        super().__init__(text)
        self.status = status


def run_process(
    module: str, job: str, purpose: str, environment: Mapping[str, str] | None = None
) -> None:
    """Run ``python -m MODULE`` for a job to its end; it ends with this process.

    Args:
        module: the module, which calls ``main``.
        job: what the process reads; empty if it gets its job from another one.
        purpose: what the process does, for messages.
        environment: all environment variables of the process; None: those of this one.

    Raises:
        ProcessExit: the process ended without a message.
        Exception: any error of the job.
    """
    with tempfile.TemporaryDirectory(prefix="regard-job-") as folder:
        job_file, error_file = Path(folder) / "job.json", Path(folder) / "error"
        job_file.write_text(job, encoding="utf-8")
        command = [sys.executable, "-m", module, str(job_file), str(error_file)]
        with ChildProcess(command, environment=environment) as process:
            status = process.wait()  # if a signal ends the wait, the process is killed
        if error_file.exists():
            raise pickle.loads(error_file.read_bytes())
    if status:
        raise ProcessExit(status, purpose)


def jax_environment(environment: Mapping[str, str], deterministic: bool = False) -> dict[str, str]:
    """Return the environment variables of a process that computes with JAX.

    Args:
        environment: the variables of the process that starts it.
        deterministic: whether sums keep a fixed order on GPUs.
    """
    flags = [environment.get("XLA_FLAGS", "")]
    if deterministic:
        flags.append("--xla_gpu_deterministic_ops=true")
    return {
        # Small models compile many programs of less than the second that JAX keeps by default.
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
        # As for TensorFlow, the memory of a GPU grows on demand.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        **environment,
        "KERAS_BACKEND": "jax",
        "XLA_FLAGS": " ".join(filter(None, flags)),
    }


def main(arguments: list[str], run_job: Callable[[str], None]) -> int:
    """Run a job in this process, and write an error to a file for the process that waits.

    Args:
        arguments: the file with the job, and the file for an error.
        run_job: runs the content of the file.

    Returns:
        The exit status.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    end_with_parent()
    job_file, error_file = map(Path, arguments)
    job = job_file.read_text(encoding="utf-8")
    try:
        run_job(job)
    except Exception as error:
        if job or not isinstance(error, UserError):  # `regard worker` prints a UserError itself
            traceback.print_exc()
        with contextlib.suppress(OSError):  # if the disk is full, the log still has the error
            atomic_write(error_file, pickle_error(error))
        return 1
    return 0


def exit_process(status: int) -> Any:
    """Exit without the interpreter's shutdown, which would wait for workers that are gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
