"""How a served model holds under load: latency, throughput, memory, new versions.

    python benchmarks/serving.py REGISTRY/quickstart --rows sources.txt
    python benchmarks/serving.py REGISTRY/quickstart --rows sources.txt --no-batching
    python benchmarks/serving.py REGISTRY/quickstart --rows sources.txt --swaps 20

Starts `regard serve` on a copy of the model's newest version, asks it over gRPC from many clients
at once for a while, each its next row as soon as the last is answered, and prints what it measured
as JSON. Clients and server share the machine.
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
    """Measures, and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, help="a folder of versions")
    parser.add_argument("--rows", type=Path, required=True, help="texts, one a line")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--signature", default="serving_default")
    parser.add_argument("--no-batching", action="store_true")
    parser.add_argument("--swaps", type=int, default=0, help="new versions while it is asked")
    arguments = parser.parse_args()
    texts = arguments.rows.read_text(encoding="utf-8").splitlines()
    newest = max(int(one.name) for one in arguments.model.iterdir() if one.name.isdecimal())
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder, "model")
        shutil.copytree(arguments.model / str(newest), base / "1")
        port = free_port()
        server = start(base, port, arguments.no_batching)
        try:
            result = asyncio.run(measure(arguments, base, server.pid, port, texts))
        finally:
            server.terminate()
            server.wait(60)
    print(json.dumps(result, indent=2))


def start(base: Path, port: int, alone: bool) -> subprocess.Popen[str]:
    """A server that takes requests."""
    command = [sys.executable, "-m", "pipeline.cli", "serve", str(base), "--rest-api-port", "0"]
    command += ["--port", str(port), *(["--no-batching"] if alone else [])]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert server.stdout is not None
    if not server.stdout.readline().startswith("Serving"):
        sys.exit("the server has not started")
    return server


async def measure(
    arguments: argparse.Namespace, base: Path, server: int, port: int, texts: list[str]
) -> dict[str, Any]:
    """Asks for a while, and says how it went."""
    from serving import AsyncClient
    from serving.client import ClientError

    target = f"grpc://127.0.0.1:{port}"
    options: dict[str, Any] = {"timeout": 60.0, "retries": 0}
    clients = [AsyncClient(target, "model", **options) for _ in range(arguments.clients)]
    await asyncio.gather(*(one.metadata() for one in clients))
    await asyncio.gather(*(one.predict(texts[:1], arguments.signature) for one in clients))
    before = resident(server)
    latencies: list[float] = []
    errors: list[str] = []
    end = time.monotonic() + arguments.seconds

    async def ask(client: Any, seed: int) -> None:
        draw = random.Random(seed)
        while time.monotonic() < end:
            started = time.monotonic()
            try:
                await client.predict([draw.choice(texts)], arguments.signature)
                latencies.append(time.monotonic() - started)
            except ClientError as error:
                errors.append(str(error))

    async def swap() -> int:
        """Puts new versions beside the old ones; the number of those that were served."""
        for version in range(2, arguments.swaps + 2):
            await asyncio.sleep(arguments.seconds / (arguments.swaps + 2))
            await asyncio.to_thread(shutil.copytree, base / "1", base.parent / "next")
            (base.parent / "next").rename(base / str(version))
        await asyncio.sleep(max(end - time.monotonic(), 0))
        return sum(number > 1 for number in await clients[0].status())

    started = time.monotonic()
    swapped, *_ = await asyncio.gather(swap(), *(ask(one, i) for i, one in enumerate(clients)))
    seconds = time.monotonic() - started
    await asyncio.gather(*(one.close() for one in clients))
    cuts = statistics.quantiles(latencies, n=100)
    return {
        "clients": arguments.clients,
        "seconds": round(seconds, 1),
        "batching": not arguments.no_batching,
        "answers": len(latencies),
        "errors": len(errors),
        "first_errors": sorted(set(errors))[:3],
        "answers_per_second": round(len(latencies) / seconds, 1),
        "latency_ms": {f"p{p}": round(1000 * cuts[p - 1], 1) for p in (50, 95, 99)},
        "server_mb_before": before,
        "server_mb_after": resident(server),
        "versions_served": 1 + swapped,
    }


def resident(process: int) -> int:
    """The memory of a process, in megabytes."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) // 1024


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


if __name__ == "__main__":
    main()
