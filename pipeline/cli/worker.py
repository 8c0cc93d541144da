"""``regard worker``: take part in the distributed training of another machine."""

import os
from types import FrameType
from typing import Annotated

import typer

from regard.components.trainer import distributed_worker
from regard.core.processes import handle_stop_signals
from regard.models.settings.training import Backend
from regard.pipeline.cli import terminal
from regard.pipeline.cli.options import JsonErrorsOption, option


def worker(
    backend: Annotated[
        Backend, option("--backend", "BACKEND", "The chief's training.backend: tensorflow or jax.")
    ] = "tensorflow",
    errors_as_json: JsonErrorsOption = False,
) -> None:
    """Take part in a distributed training that another machine started.

    Start [bold]regard run CONFIG[/bold] with training.devices: workers on the chief
    (worker 0), and this command on every other machine. Workers need no configuration:
    they receive it from the chief and exit when the training ends. Each machine needs its
    own TF_CONFIG and the same paths to the chief's files. With training.backend: jax,
    give --backend jax.

    [bold]Example[/bold]

      export TF_CONFIG='{"cluster": {"worker": ["a:2222", "b:2222"]},
      "task": {"type": "worker", "index": 1}}'

      regard worker

    [bold]Exit status[/bold]: 0 the training ended; 1 it failed; 2 invalid TF_CONFIG or a
    lost worker; 130 interrupted; 143 terminated.
    """
    spec = distributed_worker.WorkerSpec.from_environment(os.environ)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    place = f"Worker {spec.index} of {len(spec.addresses)}"
    text = f"{place}: waiting for {spec.addresses[0]} with training.backend: {backend} …"
    terminal.err().print(text, soft_wrap=True, highlight=False)
    with handle_stop_signals(_exit_command):
        distributed_worker.run_worker(backend)
    terminal.err().print("The training has ended.")


def _exit_command(number: int, frame: FrameType | None) -> None:
    """Exit with the status that shells use for a signal."""
    raise typer.Exit(128 + number)
