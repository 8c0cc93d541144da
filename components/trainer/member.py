"""One worker of a training on several: ``python -m components.trainer.member``.

A process of its own, for TensorFlow joins workers only before it has done anything, and the
process that runs a pipeline has transformed data by then. The chief, which has the job, tells the
others what it is when they have met; they need nothing but ``TF_CONFIG`` and the same files.
"""

from __future__ import annotations

import json
import os
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
_AGAIN = "Start all workers again: the training goes on from its last checkpoint."


def lead(fn_args: Any) -> None:
    """Trains as the chief of the workers that ``TF_CONFIG`` names, and waits for the end.

    Args:
        fn_args: TFX's ``FnArgs``.

    Raises:
        UserError: ``TF_CONFIG`` does not make this process the chief, a worker was lost, or what
            the training itself raises.
        RuntimeError: the training failed.
    """
    check_chief(os.environ)
    job = {name: getattr(fn_args, name) for name in _NEEDED}
    with tempfile.TemporaryDirectory(prefix="regard-chief-") as folder:
        asked, failed = Path(folder) / "job.json", Path(folder) / "failure.json"
        asked.write_text(json.dumps(job), encoding="utf-8")
        command = [sys.executable, "-m", "components.trainer.member", str(asked), str(failed)]
        status = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
        if failed.exists():
            raise UserError(*json.loads(failed.read_text(encoding="utf-8")))
    if status:
        raise RuntimeError(f"the chief of the workers ended with status {status}; {_AGAIN}")


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
    """
    if cluster.place(os.environ).chief:
        raise UserError(
            "this is worker 0, the chief, which runs the pipeline",
            where=cluster.VARIABLE,
            remedy="Start the command regard run CONFIG here.",
        )
    _take_part(None)


def _take_part(job: dict[str, Any] | None) -> None:
    """Meets the others, and trains."""
    from components.trainer import precision
    from components.trainer.run import train_with
    from components.trainer.team import join

    team = join()
    code = source_digest("components/trainer", "models")

    def tell() -> dict[str, Any]:
        assert job is not None
        return {**job, "custom_config": precision.resolved(job["custom_config"]), "code": code}

    try:
        told = team.told(tell)
        if told.pop("code") != code:
            raise UserError("the chief's code is another than this worker's", None, _AGAIN)
        train_with(SimpleNamespace(**told), team)
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


def main(arguments: list[str]) -> int:
    """Runs the chief's part of the job in the first file; tells a UserError in the second."""
    asked, failed = map(Path, arguments)
    try:
        _take_part(json.loads(asked.read_text(encoding="utf-8")))
    except UserError as error:
        traceback.print_exc()
        atomic_write(failed, json.dumps([error.message, error.where, error.remedy]))
        return 2
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Without the interpreter's own end, which waits for workers that may be gone.
    os._exit(status)
