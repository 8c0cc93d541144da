"""Run the parts of the benchmark, each in a process of its own, and collect their rows.

A process of its own gives each part a time limit that always holds, and the whole memory of the
device; a part that fails or is too slow loses nothing but itself. This process computes nothing
and imports neither Keras nor JAX.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.gpu.sizes import Size
from benchmarks.markdown_table import format_table
from regard.core.files import write_json

PARTS = ("numerics", "training", "torch", "search", "multi30k")
ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = (
    *("keras", "jax", "jaxlib", "jax-cuda13-plugin", "nvidia-cuda-runtime", "nvidia-cudnn-cu13"),
    *("torch", "triton", "numpy", "pydantic"),
)
_MIN_SECONDS = 10  # a part that has less does not start
# The limits of the small size are not those of a device: a busy machine compiles slowly.
_SMALL_SECONDS = 600


@dataclasses.dataclass(frozen=True)
class Process:
    """A process that computes a part, or a share of it.

    Attributes:
        part: one of ``PARTS``.
        seconds: the limit on its time; its rows up to there are kept.
        arguments: the arguments of the command ``part``.
        environment: its variables in addition to those of this process.
    """

    part: str
    seconds: float
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)


def processes(size: Size, with_torch: bool) -> list[Process]:
    """Return the processes of all parts, the most important ones first.

    Args:
        size: the size of the benchmark.
        with_torch: whether PyTorch is installed and wanted.
    """
    jax = {"KERAS_BACKEND": "jax", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    if size.name == "small":
        jax["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # compiling is all that takes time there
    exact = {"JAX_DEFAULT_MATMUL_PRECISION": "highest", "NVIDIA_TF32_OVERRIDE": "0"}
    torch = {"KERAS_BACKEND": "torch"}
    result = [Process("numerics", 120, ("--backend", "jax"), {**jax, **exact})]
    if with_torch:
        result.append(Process("numerics", 60, ("--backend", "torch"), {**torch, **exact}))
    transformers = [name for name in size.models if name.startswith("transformer")]
    result += [Process("training", 90, ("--model", name), jax) for name in size.models]
    if with_torch:
        # The same packing of rows as on JAX; Keras is imported, but computes nothing.
        result += [Process("torch", 90, ("--model", name), torch) for name in transformers]
    result += [Process("search", 90, (), jax), Process("multi30k", 420, (), jax)]
    if size.name == "small":
        result = [dataclasses.replace(process, seconds=_SMALL_SECONDS) for process in result]
    return result


def run(
    folder: Path,
    out: Path,
    size: Size,
    minutes: float,
    parts: Sequence[str] = PARTS,
    with_torch: bool = False,
) -> dict[str, Any]:
    """Run parts one after the other; after each, ``out`` has everything that is finished.

    Args:
        folder: the prepared folder.
        out: the JSON file to write; the weights are written next to it.
        size: the size of the benchmark.
        minutes: the limit on the whole run.
        parts: the parts to run.
        with_torch: also run what needs PyTorch.

    Returns:
        The content of ``out``: facts about the machine as ``about``, and the ``processes``.
    """
    end = time.monotonic() + 60 * minutes
    if with_torch and find_spec("torch") is None:
        print("PyTorch is not installed; its parts are left out.", flush=True)
        with_torch = False
    finished: list[dict[str, Any]] = []
    result = {"about": describe_machine(size), "processes": finished}
    for process in processes(size, with_torch):
        if process.part in parts:
            finished.append(run_process(process, folder, out, end - time.monotonic()))
            write_json(out, result)
            print(format_process(finished[-1]), flush=True)
    return result


def run_process(process: Process, folder: Path, out: Path, seconds_left: float) -> dict[str, Any]:
    """Run a process within its limit and that of the run.

    Returns:
        Its ``part``, ``arguments``, ``status`` (``finished``, ``failed``, ``timed out`` or
        ``skipped``), ``seconds``, the ``rows`` that it has written, and ``facts`` about it.
    """
    limit = min(process.seconds, seconds_left)
    record = {"part": process.part, "arguments": list(process.arguments)}
    if limit < _MIN_SECONDS:
        return {**record, "status": "skipped", "seconds": 0.0, "rows": [], "facts": {}}
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        rows = Path(temporary, "rows.jsonl")
        command = [
            *(sys.executable, "-m", "benchmarks.gpu", "part", process.part, str(folder)),
            *("--rows", str(rows), "--weights", str(weights_path(out))),
            *("--seconds", str(limit), *process.arguments),
        ]
        paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "PYTHONPATH": paths, **process.environment}
        status = wait(command, environment, limit)
        entries = read_rows(rows)
    facts: dict[str, Any] = {}
    for entry in entries:
        facts |= entry.get("facts", {})
    return {
        **record,
        "status": status,
        "seconds": round(time.monotonic() - start, 1),
        "rows": [entry for entry in entries if "facts" not in entry],
        "facts": facts,
    }


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows that a process has written; the last line of a killed one may be cut."""
    if not path.exists():
        return []
    lines = path.read_text("utf-8").split("\n")[:-1]
    return [json.loads(line) for line in lines]


def wait(command: Sequence[str], environment: Mapping[str, str], seconds: float) -> str:
    """Run a command, and end it with all of its child processes when its time is over.

    Returns:
        ``finished``, ``failed: exit STATUS`` or ``timed out``.
    """
    # A group of its own can be killed as a whole; a session of its own would outlive a killed run.
    process = subprocess.Popen(list(command), env=dict(environment), preexec_fn=os.setpgrp)
    try:
        code = process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return "timed out"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return "finished" if code == 0 else f"failed: exit {code}"


def weights_path(out: Path) -> Path:
    """Return the file of the weights of part ``multi30k``."""
    return out.with_suffix(".weights.npz")


def describe_machine(size: Size) -> dict[str, Any]:
    """Return the card, the driver, the versions, the date and the commit."""
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    query = ("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "size": size.name,
        "cards": output_of(query).splitlines(),
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "versions": versions,
        # Empty in a copy without Git; the settings of the folder have the commit, too.
        "commit": output_of(("git", "-C", str(ROOT), "rev-parse", "HEAD")),
    }


def output_of(command: Sequence[str]) -> str:
    """Return the output of a command, or an empty text if it fails."""
    try:
        completed = subprocess.run(list(command), capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return completed.stdout.strip() if completed.returncode == 0 else ""


def format_process(record: Mapping[str, Any]) -> str:
    """Return the status of a process, and its rows as a Markdown table."""
    words = " ".join((record["part"], *record["arguments"]))
    title = f"\n{words}: {record['status']}, {record['seconds']} s"
    rows = record["rows"]
    if not rows:
        return title
    # The keys of all rows: one that failed has an error instead of numbers.
    keys = list(dict.fromkeys(key for row in rows for key in row if not isinstance(row[key], list)))
    cells = [[format_cell(row.get(key)) for key in keys] for row in rows]
    return f"{title}\n\n{format_table([key.replace('_', ' ') for key in keys], cells)}"


def format_cell(value: Any) -> str:
    """Return a value as a cell of a table."""
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
