"""The worker processes of a distributed training, and their places in ``TF_CONFIG``.

A worker trains in a process of its own: TensorFlow and JAX connect workers only before their first
operation, and the process that runs a pipeline has transformed data by then. They also ignore
signals while they wait for other workers, so that another process has to handle them. The chief
broadcasts the job once all are connected; the others need only ``TF_CONFIG``, the backend and the
same files.
"""

import importlib.util
import os
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, StrictInt, StringConstraints, ValidationError
from typing_extensions import Self

from regard.components.settings.trainer import NODE
from regard.components.trainer import job_process
from regard.core import events
from regard.core.errors import EnvironmentFault, UserError
from regard.models.settings.training import Backend

VARIABLE = "TF_CONFIG"
TENSORFLOW_PROCESS = "regard.components.trainer.run_fn"
JAX_PROCESS = "regard.components.trainer.jax_process"
_COMMANDS = {"tensorflow": "regard worker", "jax": "regard worker --backend jax"}
_PURPOSE = "trains with the other workers"
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
            raise EnvironmentFault(
                "The variable is not set: no workers are known.", VARIABLE, _REMEDY
            )
        try:
            config = _TfConfig.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(map(str, first["loc"]))
            place = f" at {key}" if key else ""
            message = f"Invalid value{place}: {first['msg']}."
            raise EnvironmentFault(message, VARIABLE, _REMEDY) from error
        addresses, index = tuple(config.cluster.get("worker", ())), int(config.task.index)
        for address in addresses:
            if not 0 < int(address.rpartition(":")[2]) < 1 << 16:
                raise EnvironmentFault(f"Invalid port in {address!r}.", VARIABLE, _REMEDY)
            if addresses.count(address) > 1:
                raise EnvironmentFault(f"The address {address!r} is repeated.", VARIABLE, _REMEDY)
        if not 0 <= index < len(addresses):
            message = f"There is no worker {index} among {len(addresses)}."
            raise EnvironmentFault(message, VARIABLE, _REMEDY)
        return cls(addresses, index)


def run_chief(job: str) -> None:
    """Train as the chief of the workers in ``TF_CONFIG``, and wait for the end.

    Args:
        job: the ``TrainingJob`` as JSON.

    Raises:
        UserError: this process is not the chief, or the connection to a worker is lost.
        ProcessExit: the worker process ended without a message.
        Exception: any error of the training.
    """
    check_chief(os.environ, "tensorflow")
    report_wait("tensorflow")
    run_process(TENSORFLOW_PROCESS, job)


def check_chief(environ: Mapping[str, str], backend: Backend) -> None:
    """Check the ``TF_CONFIG`` of the chief.

    Args:
        environ: the environment variables of this process.
        backend: the setting ``training.backend``.

    Raises:
        UserError: this process is not the chief, or its port is in use.
    """
    spec = WorkerSpec.from_environment(environ)
    if not spec.is_chief:
        message = f"This is worker {spec.index}, but worker 0, the chief, runs the pipeline."
        raise EnvironmentFault(message, VARIABLE, f"Run `{_COMMANDS[backend]}` here.")
    port = int(spec.addresses[0].rpartition(":")[2])
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind(("", port))
        except OSError as error:
            message = f"The chief cannot listen on port {port}: {error.strerror}."
            raise EnvironmentFault(
                message, VARIABLE, "Name a free port of this machine."
            ) from error


def report_wait(backend: Backend) -> None:
    """Say which workers the chief waits for: one with another backend would wait for ever."""
    others = WorkerSpec.from_environment(os.environ).addresses[1:]
    if others:
        text = f"waits until `{_COMMANDS[backend]}` runs on {', '.join(others)}"
        events.emit("note", node=NODE, text=text)


def check_jax() -> None:
    """Raise a UserError unless JAX is installed."""
    if importlib.util.find_spec("jax") is None:
        remedy = 'Run: pip install "regard[jax]", or "regard[jax-cuda]" for NVIDIA GPUs.'
        raise EnvironmentFault("JAX is not installed.", "training.backend: jax", remedy)


def run_worker(backend: Backend) -> None:
    """Train as a worker that is not the chief, until the training ends.

    Args:
        backend: the setting ``training.backend`` of the chief.

    Raises:
        UserError: this process is the chief, or the chief runs another version.
        ProcessExit: the worker process ended without a message.
        Exception: any error of the training.
    """
    if WorkerSpec.from_environment(os.environ).is_chief:
        message = "This is worker 0, the chief, which runs the pipeline."
        raise EnvironmentFault(message, VARIABLE, "Run `regard run CONFIG` here.")
    if backend == "jax":
        check_jax()
        run_process(JAX_PROCESS, "", job_process.jax_environment(os.environ))
    else:
        run_process(TENSORFLOW_PROCESS, "")


def run_process(module: str, job: str, environment: Mapping[str, str] | None = None) -> None:
    """Train in another process with the other workers, see ``job_process.run_process``.

    Raises:
        UserError: the connection to a worker is lost.
    """
    try:
        job_process.run_process(module, job, _PURPOSE, environment)
    except job_process.ProcessExit as error:
        # JAX aborts a process when another one has ended.
        if module != JAX_PROCESS or error.status != -signal.SIGABRT:
            raise
        message = "the process of another worker has ended, or the output above names another cause"
        raise connection_error(message) from error


def connection_error(message: str) -> UserError:
    """The error for a lost connection.

    Args:
        message: the backend's, of several lines.
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    causes = [line for line in lines if "aborted by" in line or "address" in line]
    cause = next(iter(causes or lines), "no reason given")
    return EnvironmentFault(
        f"The connection between the workers is lost: {cause}",
        where="training.devices: workers",
        remedy="Start all workers again: the training resumes from its last checkpoint.",
    )
