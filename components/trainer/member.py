"""One worker of a training on several: ``python -m components.trainer.member``.

A process of its own, for TensorFlow joins workers only before it has done anything, and the
process that runs a pipeline has transformed data by then; and for TensorFlow hears no signal while
it waits for others, so that another process has to. The chief, which has the job, tells the others
what it is when they have met; they need nothing but ``TF_CONFIG`` and the same files.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from components.errors import UserError
from components.files import atomic_write, source_digest
from components.trainer import cluster

_NEEDED = (
    "custom_config",
    "transform_graph_path",
    "train_files",
    "eval_files",
    "model_run_dir",
    "serving_model_dir",
)
_PROCESS = "the process that trains with the other workers"
_SAME = "Give all workers the same version of Regard, and start them again."
_AGAIN = "Start all workers again: the training goes on from its last checkpoint."


def lead(fn_args: Any) -> None:
    """Trains as the chief of the workers that ``TF_CONFIG`` names, and waits for the end.

    Args:
        fn_args: TFX's ``FnArgs``.

    Raises:
        UserError: ``TF_CONFIG`` does not make this process the chief, a worker was lost, or what
            the training itself raises.
        RuntimeError: the training's process ended without telling why.
        Exception: what the training raised, of its own type.
    """
    check_chief(os.environ)
    _train({name: getattr(fn_args, name) for name in _NEEDED})


def check_chief(environ: Any) -> None:
    """Raises a UserError where ``TF_CONFIG`` is not that of a chief."""
    place = cluster.place(environ)
    if not place.chief:
        raise UserError(
            f"this is worker {place.index}; the pipeline is run by worker 0, the chief",
            where=cluster.VARIABLE,
            remedy="Start the command regard worker here.",
        )


def follow() -> None:
    """Trains along as a worker that is not the chief, until the training ends.

    Raises:
        UserError: ``TF_CONFIG`` is the chief's or none, or the chief's program is another one.
        RuntimeError: the training ended without telling why.
        Exception: what the training raised, of its own type.
    """
    if cluster.place(os.environ).chief:
        raise UserError(
            "this is worker 0, the chief, which runs the pipeline",
            where=cluster.VARIABLE,
            remedy="Start the command regard run CONFIG here.",
        )
    _train(None)


def _train(job: dict[str, Any] | None) -> None:
    """Has a process take part in the training, and waits for it; it ends with this one."""
    with tempfile.TemporaryDirectory(prefix="regard-member-") as folder:
        asked, failed = Path(folder) / "job.json", Path(folder) / "failure"
        asked.write_text(json.dumps(job), encoding="utf-8")
        command = [sys.executable, "-m", "components.trainer.member", str(asked), str(failed)]
        # Never written to: its end tells the process that this one is gone.
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
            try:
                status = process.wait()
            except BaseException:  # a signal: TensorFlow, where it waits for others, hears none
                process.kill()
                raise
        if failed.exists():
            raise pickle.loads(failed.read_bytes())
    if status:
        raise RuntimeError(ended(status))


def ended(status: int) -> str:
    """What is to be told of a training's process that ended so, and told nothing itself."""
    if status == -signal.SIGKILL:
        return (
            f"{_PROCESS} was killed (signal 9), perhaps because memory ran out: give the machine "
            "more memory, or training.batch_tokens a smaller value"
        )
    if status < 0:
        return f"{_PROCESS} crashed with {signal.Signals(-status).name}"
    return f"{_PROCESS} ended with status {status}; its last lines say more"


def _take_part(job: dict[str, Any] | None) -> None:
    """Meets the others, and trains."""
    from components.trainer import precision
    from components.trainer.team import join
    from components.trainer.train_and_export import train_and_export

    team = join()
    code = source_digest("components/trainer", "models")

    def tell() -> dict[str, Any]:
        assert job is not None
        return {**job, "custom_config": precision.resolved(job["custom_config"]), "code": code}

    try:
        told = team.told(tell)
        if told.pop("code") != code:
            raise UserError("the chief's code is another than this worker's", None, _SAME)
        train_and_export(SimpleNamespace(**told), team)
    except _lost() as error:
        raise UserError(
            f"the connection between the workers is lost: {reason(error.message)}",
            where="training.devices: workers",
            remedy=_AGAIN,
        ) from error


def reason(message: str) -> str:
    """The line of TensorFlow's message that tells why workers no longer hear of each other."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    telling = [line for line in lines if "aborted by" in line or "address" in line]
    return next(iter(telling or lines), "no reason given")


def _lost() -> tuple[type[Any], ...]:
    """What TensorFlow raises where a worker is gone."""
    import tensorflow as tf

    errors = tf.errors
    return (
        errors.UnavailableError,
        errors.AbortedError,
        errors.CancelledError,
        errors.DeadlineExceededError,
    )


def failure(error: Exception) -> bytes:
    """An error as it goes to the process that waits: itself, or its type and message as text."""
    try:
        told = pickle.dumps(error)
        pickle.loads(told)
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return told


def main(arguments: list[str]) -> int:
    """Does this process's part of the job in the first file; an error goes to the second."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    _end_with_parent()
    asked, failed = map(Path, arguments)
    job = json.loads(asked.read_text(encoding="utf-8"))
    try:
        _take_part(job)
    except Exception as error:
        if job is not None or not isinstance(error, UserError):  # a user's terminal needs it not
            traceback.print_exc()
        with contextlib.suppress(OSError):  # on a full disk the log still has it
            atomic_write(failed, failure(error))
        return 1
    return 0


def _end_with_parent() -> None:
    """Has this process ended as soon as the one that waits for it is gone, which holds its stdin.

    The kernel tells of it by a signal that ends a process. No thread could: TensorFlow keeps
    Python's lock while it waits for other workers.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([0], [], [], 0)[0]:  # it was gone before
        os._exit(1)


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Without the interpreter's own end, which waits for workers that may be gone.
    os._exit(status)
