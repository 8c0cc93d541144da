"""A running `regard serve`, to which `server` sends requests."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PREDICT = "/tensorflow.serving.PredictionService/Predict"


class Target:
    """A running server.

    Args:
        model: a folder of versions.
        folder: the folder of its log.
    """

    def __init__(self, model: Path, folder: Path):
        self.log = folder / "serve.log"
        self.name = model.name
        self.grpc_port, self.rest_port = _free_port(), _free_port()
        command = [sys.executable, "-m", "regard.pipeline.cli", "serve", str(model)]
        command += ["--port", str(self.grpc_port), "--rest-api-port", str(self.rest_port)]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=_limit,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
            )
        assert self.process.stdout is not None
        if not self.process.stdout.readline().startswith("Serving"):
            sys.exit(f"The server did not start:\n{self.log.read_text()}")
        for _ in range(20):
            self.post(json.dumps({"instances": ["a"]}).encode())

    def post(self, body: bytes, path: str = "", timeout: float = 120.0) -> int:
        """Send a Predict request over REST, and return the status; 0 if the connection ends."""
        connection = http.client.HTTPConnection("127.0.0.1", self.rest_port, timeout=timeout)
        with contextlib.closing(connection):
            with contextlib.suppress(ConnectionError):  # a refused body; there may be a response
                connection.request("POST", path or f"/v1/models/{self.name}:predict", body)
            try:
                response = connection.getresponse()
                response.read()
                return response.status
            except (OSError, http.client.HTTPException):
                return 0

    def call(self, stub: Any, message: bytes, timeout: float = 120.0) -> str:
        """Send a Predict request over gRPC, and return the name of its status."""
        import grpc

        try:
            stub(message, timeout=timeout)
            return "OK"
        except grpc.RpcError as error:
            return str(error.code().name)

    def status(self, field: str) -> float:
        """Return a field of the process's status in MB: ``VmRSS`` or ``VmHWM``."""
        text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(text.split(f"{field}:")[1].split()[0]) / 1024

    def processor_seconds(self) -> float:
        """Return the processor time of the server until now."""
        return processor_seconds(self.process.pid)

    def stop(self) -> float:
        """Send SIGTERM, and return the seconds until the server has ended."""
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return time.monotonic() - started


def processor_seconds(process: int) -> float:
    """Return the processor time of a process until now."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def open_channel(target: Target) -> Any:
    """Return a gRPC channel with a connection of its own."""
    import grpc

    # Without the option, channels of one process share a connection.
    options = [("grpc.use_local_subchannel_pool", 1)]
    return grpc.insecure_channel(f"127.0.0.1:{target.grpc_port}", options)


def create_stub(target: Target) -> Any:
    """Return a function that sends the bytes of a Predict request over a new channel."""
    return open_channel(target).unary_unary(PREDICT)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
