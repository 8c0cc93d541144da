"""The worker processes of a distributed training, and their places in ``TF_CONFIG``.

A worker trains in a process of its own: TensorFlow connects workers only before its first
operation, and the process that runs a pipeline has transformed data by then. TensorFlow also
ignores signals while it waits for other workers, so that another process has to handle them. The
chief broadcasts the job once all are connected; the others need only ``TF_CONFIG`` and the same
files.
"""

import contextlib
import os
import pickle
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, StrictInt, StringConstraints, ValidationError
from typing_extensions import Self

from regard.core.errors import UserError, pickle_error
from regard.core.files import atomic_write
from regard.core.processes import ChildProcess, describe_exit, end_with_parent

VARIABLE = "TF_CONFIG"
_EXAMPLE = (
    '{"cluster": {"worker": ["host-a:2222", "host-b:2222"]}, '
    '"task": {"type": "worker", "index": 0}}'
)
_REMEDY = f"Set it for every worker, each with its own index: TF_CONFIG='{_EXAMPLE}'."


class _Task(BaseModel):
    model_config = ConfigDict(strict=True)

    type: Literal["worker"]
    index: StrictInt | Annotated[str, StringConstraints(pattern="^[0-9]+$")]


class _TfConfig(BaseModel):
    model_config = ConfigDict(strict=True)

    cluster: dict[
        Literal["worker"], list[Annotated[str, StringConstraints(pattern="^.+:[0-9]{1,5}$")]]
    ]
    task: _Task


@dataclass(frozen=True)
class WorkerSpec:
    """The place of this process among all workers.

    Attributes:
        addresses: ``HOST:PORT`` of every worker.
        index: the number of this process; 0 is the chief.
    """

    addresses: tuple[str, ...]
    index: int

    @property
    def is_chief(self) -> bool:
        """Whether this worker runs the pipeline and writes the model."""
        return self.index == 0

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Parse ``TF_CONFIG``.

        Raises:
            UserError: it is missing, invalid, or names other tasks than workers.
        """
        text = environ.get(VARIABLE, "").strip()
        if not text:
            raise UserError("The variable is not set: no workers are known.", VARIABLE, _REMEDY)
        try:
            config = _TfConfig.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(map(str, first["loc"]))
            place = f" at {key}" if key else ""
            message = f"Invalid value{place}: {first['msg']}."
            raise UserError(message, VARIABLE, _REMEDY) from error
        addresses, index = tuple(config.cluster.get("worker", ())), int(config.task.index)
        for address in addresses:
            if not 0 < int(address.rpartition(":")[2]) < 1 << 16:
                raise UserError(f"Invalid port in {address!r}.", VARIABLE, _REMEDY)
            if addresses.count(address) > 1:
                raise UserError(f"The address {address!r} is repeated.", VARIABLE, _REMEDY)
        if not 0 <= index < len(addresses):
            message = f"There is no worker {index} among {len(addresses)}."
            raise UserError(message, VARIABLE, _REMEDY)
        return cls(addresses, index)


def run_chief(job: str) -> None:
    """Train as the chief of the workers in ``TF_CONFIG``, and wait for the end.

    Args:
        job: the ``TrainingJob`` as JSON.

    Raises:
        UserError: this process is not the chief, or the connection to a worker is lost.
        RuntimeError: the worker process ended without a message.
        Exception: any error of the training.
    """
    check_chief(os.environ)
    _run_process(job)


def check_chief(environ: Mapping[str, str]) -> None:
    """Raise a UserError unless ``TF_CONFIG`` makes this process the chief."""
    spec = WorkerSpec.from_environment(environ)
    if not spec.is_chief:
        message = f"This is worker {spec.index}, but worker 0, the chief, runs the pipeline."
        raise UserError(message, VARIABLE, "Run `regard worker` here.")


def run_worker() -> None:
    """Train as a worker that is not the chief, until the training ends.

    Raises:
        UserError: this process is the chief, or the chief runs another version.
        RuntimeError: the worker process ended without a message.
        Exception: any error of the training.
    """
    if WorkerSpec.from_environment(os.environ).is_chief:
        message = "This is worker 0, the chief, which runs the pipeline."
        raise UserError(message, VARIABLE, "Run `regard run CONFIG` here.")
    _run_process("")


def _run_process(job: str) -> None:
    """Run the worker process to its end; it ends with this one."""
    with tempfile.TemporaryDirectory(prefix="regard-worker-") as folder:
        job_file, error_file = Path(folder) / "job.json", Path(folder) / "error"
        job_file.write_text(job, encoding="utf-8")
        module = "regard.components.trainer.run_fn"
        command = [sys.executable, "-m", module, str(job_file), str(error_file)]
        with ChildProcess(command) as process:  # killed if a signal ends the wait
            status = process.wait()
        if error_file.exists():
            raise pickle.loads(error_file.read_bytes())
    if status:
        raise RuntimeError(exit_message(status))


def exit_message(status: int) -> str:
    """Describe the end of a worker process that has left no error."""
    text = f"The process that trains with the other workers {describe_exit(status)}."
    if status == -signal.SIGKILL:
        return f"{text} Give the machine more memory, or reduce training.batch_tokens."
    return text


def main(arguments: list[str], train_job: Callable[[str], None]) -> int:
    """Train in this process, and write an error to a file for the process that waits.

    Args:
        arguments: the file with the job, empty for a worker that gets it from the chief, and the
            file for an error.
        train_job: trains with the other workers.

    Returns:
        The exit status.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    end_with_parent()
    job_file, error_file = map(Path, arguments)
    job = job_file.read_text(encoding="utf-8")
    try:
        train_job(job)
    except Exception as error:
        if job or not isinstance(error, UserError):  # `regard worker` prints a UserError itself
            traceback.print_exc()
        with contextlib.suppress(OSError):  # if the disk is full, the log still has the error
            atomic_write(error_file, pickle_error(error))
        return 1
    return 0


def connection_error(message: str) -> UserError:
    """The error for a lost connection.

    Args:
        message: TensorFlow's, of several lines.
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    causes = [line for line in lines if "aborted by" in line or "address" in line]
    cause = next(iter(causes or lines), "no reason given")
    return UserError(
        f"The connection between the workers is lost: {cause}",
        where="training.devices: workers",
        remedy="Start all workers again: the training resumes from its last checkpoint.",
    )


def exit_process(status: int) -> Any:
    """Exit without the interpreter's shutdown, which would wait for workers that are gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
