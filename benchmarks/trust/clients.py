"""Latency of a server with many clients, over gRPC and REST, compared with a plain gRPC server.

    python -m benchmarks.trust clients REGISTRY/quickstart --rounds 3

Each client sends one row at a time, as soon as its previous request is answered, over one
connection that stays open. The plain server answers the same requests with the stored response of
`regard serve` and computes nothing: what it needs is the cost of gRPC in Python. Prints one line of
JSON per round, transport and number of clients; `rows` is the mean size of a batch. Clients and
server share the machine; all traffic stays on the loopback address.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.trust import _attacks as attacks
from benchmarks.trust._target import PREDICT, Target, create_stub, processor_seconds

TEXT = "20 Nov 2026"
Send = Callable[[], Awaitable[object]]


def main(arguments: list[str]) -> int:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trust clients")
    parser.add_argument("model", type=Path, help="a folder of versions; its inputs are one text")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16, 64, 128])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--text", default=TEXT, help="the row of every request")
    options = parser.parse_args(arguments)
    newest = max(int(path.name) for path in options.model.iterdir() if path.name.isdecimal())
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder, "model")
        shutil.copytree(options.model / str(newest), base / "1")
        target = Target(base, Path(folder))
        try:
            message = attacks.predict_message(target.name, [options.text])
            response = create_stub(target)(message, timeout=60)
            body = json.dumps({"instances": [options.text]}).encode()
            path = f"/v1/models/{target.name}:predict"
            with _echo_server(response) as (echo, echo_port):
                systems: dict[str, tuple[int, Callable[[], Any]]] = {
                    "gRPC": (target.process.pid, lambda: _grpc(target.grpc_port, message)),
                    "REST": (target.process.pid, lambda: _rest(target.rest_port, path, body)),
                    "plain gRPC": (echo, lambda: _grpc(echo_port, message)),
                }
                rounds = range(1, options.rounds + 1)
                for round_, count, name in itertools.product(rounds, options.clients, systems):
                    process, connect = systems[name]
                    used, before = processor_seconds(process), _count_batches(target)
                    latencies = asyncio.run(_measure(connect, count, options.seconds))
                    used = processor_seconds(process) - used
                    after = _count_batches(target)
                    batches = after[1] - before[1]
                    cuts = statistics.quantiles(latencies, n=100)
                    result = {
                        "round": round_,
                        "transport": name,
                        "clients": count,
                        "per_second": round(len(latencies) / options.seconds, 1),
                        "p50_ms": round(1000 * cuts[49], 2),
                        "p99_ms": round(1000 * cuts[98], 2),
                        "processor_ms": round(1000 * used / len(latencies), 3),
                        "rows": round((after[0] - before[0]) / batches, 1) if batches else None,
                    }
                    print(json.dumps(result), flush=True)
        finally:
            target.stop()
    return 0


def _count_batches(target: Target) -> tuple[float, float]:
    """Return the rows of all batches that the server has run, and the number of these batches."""
    url = f"http://127.0.0.1:{target.rest_port}/monitoring/prometheus/metrics"
    with urllib.request.urlopen(url, timeout=60) as response:
        lines = response.read().decode().splitlines()
    name = ":tensorflow:serving:batching_session:processed_batch_size"
    rows, count = (
        sum(float(line.split()[-1]) for line in lines if line.startswith(f"{name}_{field}"))
        for field in ("sum", "count")
    )
    return rows, count


async def _measure(connect: Callable[[], Any], clients: int, seconds: float) -> list[float]:
    """Send requests from many clients, and return the latencies in seconds."""
    latencies: list[float] = []

    async def run(send: Send) -> None:
        await send()  # opens the connection
        ready.append(send)
        while len(ready) < clients:
            await asyncio.sleep(0.01)
        end = time.perf_counter() + seconds
        while (started := time.perf_counter()) < end:
            await send()
            latencies.append(time.perf_counter() - started)

    ready: list[Send] = []
    async with contextlib.AsyncExitStack() as stack:
        sends = [await stack.enter_async_context(connect()) for _ in range(clients)]
        await asyncio.gather(*map(run, sends))
    return latencies


@contextlib.asynccontextmanager
async def _grpc(port: int, message: bytes) -> Any:
    """A function that sends a Predict message over a connection of its own."""
    import grpc

    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options) as channel:
        stub = channel.unary_unary(PREDICT)
        yield lambda: stub(message, timeout=60)


@contextlib.asynccontextmanager
async def _rest(port: int, path: str, body: bytes) -> Any:
    """A function that sends a request over a connection of its own, and reads the response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"

    async def send() -> None:
        writer.write(head.encode() + body)
        received = (await reader.readuntil(b"\r\n\r\n")).lower()
        if not received.startswith(b"http/1.1 200 "):
            raise RuntimeError(received.decode())
        length = received.split(b"content-length:")[1].split(b"\r\n")[0]
        await reader.readexactly(int(length))

    try:
        yield send
    finally:
        writer.close()


@contextlib.contextmanager
def _echo_server(response: bytes) -> Iterator[tuple[int, int]]:
    """Start a plain server, and return its process and its port."""
    command = [sys.executable, "-m", "benchmarks.trust._echo_server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(response)
            process.stdin.close()
            yield process.pid, int(process.stdout.readline())
        finally:
            process.terminate()
