"""Runs ``serving/check.py`` in a fresh, isolated interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from components import events
from serving import check

LAST_LINES = 15


def run_check(request: dict[str, Any], timeout_seconds: float) -> dict[str, Any]:
    """Gives the request to a new process and returns its result.

    The interpreter is isolated (``-I``): it sees installed packages, but neither the working
    directory nor ``PYTHONPATH``.

    Raises:
        RuntimeError: if the process fails or takes longer than ``timeout_seconds``.
    """
    with tempfile.TemporaryDirectory(prefix="regard-serving-check-") as folder:
        asked, answered = Path(folder) / "request.json", Path(folder) / "result.json"
        asked.write_text(json.dumps(request, ensure_ascii=False), encoding="utf-8")
        command = [sys.executable, "-I", str(Path(check.__file__)), str(asked), str(answered)]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(
                f"the exported model was not loaded and checked within {timeout_seconds:g} s"
                f" in a fresh process{_tail(error.stderr)}"
            ) from error
        if done.returncode or not answered.exists():
            raise RuntimeError(
                f"the fresh process that loads the exported model ended with status"
                f" {done.returncode}{_tail(done.stderr)}"
            )
        return json.loads(answered.read_text(encoding="utf-8"))


def _environment() -> dict[str, str]:
    environment = dict(os.environ)
    environment.pop(events.VARIABLE, None)
    environment["TF_CPP_MIN_LOG_LEVEL"] = "2"
    # This process may hold all of the accelerator's memory, and most servers have none.
    environment["CUDA_VISIBLE_DEVICES"] = "-1"
    return environment


def _tail(output: bytes | None) -> str:
    lines = (output or b"").decode("utf-8", errors="replace").strip().splitlines()
    return ":\n" + "\n".join(lines[-LAST_LINES:]) if lines else ""
