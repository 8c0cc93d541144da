"""Measure a server under load: latency, throughput, memory, new versions.

    python benchmarks/serving.py REGISTRY/quickstart --rows sources.txt
    python benchmarks/serving.py REGISTRY/quickstart --rows sources.txt --max-batch-size 1
    python benchmarks/serving.py REGISTRY/quickstart --rows sources.txt --swaps 20

Starts `regard serve` on a copy of the model's newest version. Many clients send rows over gRPC,
each as soon as its previous request is answered. Prints the result as JSON. Clients and server
share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, help="a folder of versions")
    parser.add_argument("--rows", type=Path, required=True, help="file with one text per line")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--signature", default="serving_default")
    parser.add_argument("--max-batch-size", type=int, default=64, help="1 disables batching")
    parser.add_argument(
        "--swaps", type=int, default=0, help="number of new versions during the measurement"
    )
    arguments = parser.parse_args()
    texts = arguments.rows.read_text(encoding="utf-8").splitlines()
    newest = max(
        int(folder.name) for folder in arguments.model.iterdir() if folder.name.isdecimal()
    )
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder, "model")
        shutil.copytree(arguments.model / str(newest), base / "1")
        port = free_port()
        server = start(base, port, arguments.max_batch_size)
        try:
            result = asyncio.run(measure(arguments, base, server.pid, port, texts))
        finally:
            server.terminate()
            server.wait(60)
    print(json.dumps(result, indent=2))


def start(base: Path, port: int, max_batch_size: int) -> subprocess.Popen[str]:
    """Start a server, and wait until it accepts requests."""
    command = [
        sys.executable,
        "-m",
        "regard.pipeline.cli",
        "serve",
        str(base),
        "--rest-api-port",
        "0",
    ]
    command += ["--port", str(port), "--max-batch-size", str(max_batch_size)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert server.stdout is not None
    if not server.stdout.readline().startswith("Serving"):
        sys.exit("The server did not start.")
    return server


async def measure(
    arguments: argparse.Namespace, base: Path, server: int, port: int, texts: list[str]
) -> dict[str, Any]:
    """Send requests for the given time, and return the measurements."""
    from regard.serving.client import AsyncClient, ClientError

    target = f"grpc://127.0.0.1:{port}"
    options: dict[str, Any] = {"timeout": 60.0, "retries": 0}
    clients = [AsyncClient(target, "model", **options) for _ in range(arguments.clients)]
    await asyncio.gather(*(client.metadata() for client in clients))
    await asyncio.gather(*(client.predict(texts[:1], arguments.signature) for client in clients))
    before = resident_megabytes(server)
    latencies: list[float] = []
    errors: list[str] = []
    end = time.monotonic() + arguments.seconds

    async def send_requests(client: Any, seed: int) -> None:
        draw = random.Random(seed)
        while time.monotonic() < end:
            started = time.monotonic()
            try:
                await client.predict([draw.choice(texts)], arguments.signature)
                latencies.append(time.monotonic() - started)
            except ClientError as error:
                errors.append(str(error))

    async def add_versions() -> int:
        """Add new versions, and return how many of them were served."""
        for version in range(2, arguments.swaps + 2):
            await asyncio.sleep(arguments.seconds / (arguments.swaps + 2))
            await asyncio.to_thread(shutil.copytree, base / "1", base.parent / "next")
            (base.parent / "next").rename(base / str(version))
        await asyncio.sleep(max(end - time.monotonic(), 0))
        return sum(number > 1 for number in await clients[0].status())

    started = time.monotonic()
    new_versions, *_ = await asyncio.gather(
        add_versions(), *(send_requests(client, i) for i, client in enumerate(clients))
    )
    seconds = time.monotonic() - started
    await asyncio.gather(*(client.close() for client in clients))
    cuts = statistics.quantiles(latencies, n=100)
    return {
        "clients": arguments.clients,
        "seconds": round(seconds, 1),
        "max_batch_size": arguments.max_batch_size,
        "predictions": len(latencies),
        "errors": len(errors),
        "first_errors": sorted(set(errors))[:3],
        "predictions_per_second": round(len(latencies) / seconds, 1),
        "latency_ms": {f"p{p}": round(1000 * cuts[p - 1], 1) for p in (50, 95, 99)},
        "server_mb_before": before,
        "server_mb_after": resident_megabytes(server),
        "versions_served": 1 + new_versions,
    }


def resident_megabytes(process: int) -> int:
    """The resident memory of a process, in MB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) // 1024


def free_port() -> int:
    """A free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


if __name__ == "__main__":
    main()
