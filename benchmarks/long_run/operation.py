"""Operate a scheduler, a server and a client for hours."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.long_run.client import Client
from benchmarks.long_run.drifting_data import NAME, read_sentences, write_pipeline, write_span
from benchmarks.long_run.samples import (
    append_sample,
    measure_folder,
    measure_process,
    read_samples,
)

ROOT = Path(__file__).resolve().parents[2]
SAMPLE_SECONDS = 30.0
_STOP_SECONDS = 120.0
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)


def operate(
    folder: Path, hours: float, span_minutes: float, kill_minutes: float, rate: float
) -> None:
    """Measure until the samples of the folder cover the hours.

    Args:
        folder: the folder of the measurement.
        hours: of the whole measurement.
        span_minutes: the time between two spans.
        kill_minutes: the time between two kills of the scheduler.
        rate: sentences per second.
    """
    operation = Operation(folder, rate)
    # A shell lets programs in the background ignore SIGINT.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        operation.start()
        operation.measure(hours, span_minutes * 60, kill_minutes * 60)
    except KeyboardInterrupt:
        print("Interrupted; the same command continues.")
    finally:
        operation.stop()


class Operation:
    """The processes of one measurement.

    Args:
        folder: the folder of the measurement.
        rate: sentences per second.
    """

    def __init__(self, folder: Path, rate: float):
        self._folder, self._home = folder, folder / "home"
        self._temporary = folder / "temporary"
        self._temporary.mkdir(parents=True, exist_ok=True)
        self._rate = rate
        self._port = _free_port()
        self._environment = {
            **os.environ,
            "REGARD_HOME": str(self._home),
            "TMPDIR": str(self._temporary),
            "PYTHONPATH": str(ROOT),
        }
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._client: Client | None = None

    def start(self) -> None:
        """Publish the first version if there is none, and start everything."""
        if not (self._home / "data/quickstart/train.tsv.gz").is_file():
            self._call("data", "generate", "quickstart")
        self._config = write_pipeline(self._folder, self._home)
        if not self._spans():
            write_span(self._home, 1)
        if not self._versions():
            self._call("schedule", str(self._config), "--once")
        self._start_scheduler()
        self._start_server()
        self._client = Client(self._port, NAME, read_sentences(self._home), self._rate)
        self._client.start()

    def stop(self) -> None:
        """End everything; a run continues at the next start."""
        if self._client is not None:
            self._client.stop()
            self._client.join(_STOP_SECONDS)
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_SECONDS)

    def measure(self, hours: float, span_seconds: float, kill_seconds: float) -> None:
        """Add spans, kill the scheduler and write samples until they cover the hours."""
        earlier = read_samples(self._folder)
        passed = earlier[-1]["hours"] * 3600 if earlier else 0.0
        started = time.monotonic() - passed
        next_span, next_kill = time.monotonic() + span_seconds, time.monotonic() + kill_seconds
        kills = earlier[-1]["kills"] if earlier else 0
        while time.monotonic() - started < hours * 3600:
            time.sleep(SAMPLE_SECONDS)
            now = time.monotonic()
            if now >= next_span:
                write_span(self._home, self._spans() + 1)
                next_span = now + span_seconds
            if now >= next_kill:
                self._processes["scheduler"].kill()
                self._processes["scheduler"].wait()
                self._start_scheduler()
                kills, next_kill = kills + 1, now + kill_seconds
            for name, process in self._processes.items():
                if process.poll() is not None:
                    raise RuntimeError(f"The {name} ended; see {self._folder / name}.log.")
            append_sample(
                self._folder,
                {"hours": round((now - started) / 3600, 5), "kills": kills, **self._sample()},
            )

    def _sample(self) -> dict[str, Any]:
        assert self._client is not None
        return {
            **{name: measure_process(process.pid) for name, process in self._processes.items()},
            "registry": measure_folder(self._home / "registry"),
            "pipelines": measure_folder(self._home / "pipelines"),
            "temporary": measure_folder(self._temporary),
            "spans": self._spans(),
            "versions": self._versions(),
            "served": self._served(),
            "runs": {run["id"]: run["status"] for run in self._runs()},
            **self._client.take(),
        }

    def _served(self) -> list[int]:
        """Return the versions that the server has."""
        url = f"http://127.0.0.1:{self._port}/v1/models/{NAME}"
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                states = json.load(response)["model_version_status"]
        except OSError:
            return []
        return sorted(int(x["version"]) for x in states if x["state"] == "AVAILABLE")

    def _runs(self) -> list[dict[str, Any]]:
        """Return the runs that have not been removed."""
        runs: list[dict[str, Any]] = json.loads(self._call("runs", NAME, "--json"))
        return runs

    def _spans(self) -> int:
        return len(list((self._home / "data").glob("span-*.tsv")))

    def _versions(self) -> list[int]:
        folder = self._home / "registry" / NAME
        names = [path.name for path in folder.glob("*")] if folder.is_dir() else []
        return sorted(int(name) for name in names if name.isdecimal())

    def _start_scheduler(self) -> None:
        self._start_process("scheduler", "schedule", str(self._config))

    def _start_server(self) -> None:
        requests = str(self._folder / "requests.jsonl")
        options = ["--port", "0", "--rest-api-port", str(self._port), "--log-requests", requests]
        self._start_process("server", "serve", NAME, *options)
        while not self._served():
            if self._processes["server"].poll() is not None:
                raise RuntimeError(f"The server ended; see {self._folder}/server.log.")
            time.sleep(0.5)

    def _start_process(self, name: str, *arguments: str) -> None:
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", "regard.pipeline.cli", *arguments],
                env=self._environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,
            )

    def _call(self, *arguments: str) -> str:
        """Run a command to its end, and return what it prints."""
        command = [sys.executable, "-m", "regard.pipeline.cli", *arguments]
        return subprocess.run(
            command,
            env=self._environment,
            cwd=self._folder,
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        ).stdout


def _die_with_parent() -> None:
    """Let the kernel end this process when this program is killed."""
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGTERM)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
