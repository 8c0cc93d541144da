"""Attack a served model on this machine, and measure its memory, its time and a second client.

    python -m benchmarks.trust server REGISTRY/quickstart
    python -m benchmarks.trust server REGISTRY/quickstart --only abuse --inputs 50000

Starts `regard serve` with 1,024 descriptors for each measurement, and prints the results as JSON
lines. All traffic stays on the loopback address.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import http.client
import json
import math
import random
import resource
import shutil
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.trust import _attacks as attacks
from benchmarks.trust import _protocol_attacks as protocol_attacks
from benchmarks.trust._attacks import MB, SCRIPTS
from benchmarks.trust._second_client import describe, second_client
from benchmarks.trust._target import PREDICT, Target, create_stub, open_channel

_LATENCY_ROUNDS = 500


def main(arguments: list[str]) -> int:
    """Run the measurements, and return 1 if one misses its bar."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trust server")
    parser.add_argument("model", type=Path, help="a folder of versions; its inputs are one text")
    parser.add_argument("--only", choices=sorted(PARTS), nargs="+", default=list(PARTS))
    parser.add_argument("--inputs", type=int, default=50_000, help="of the abuse corpus")
    parser.add_argument("--requests", type=int, default=1_000_000, help="of varied shapes")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each protocol attack")
    parser.add_argument("--swaps", type=int, default=200)
    options = parser.parse_args(arguments)
    is_met = True
    for part in options.only:
        with tempfile.TemporaryDirectory() as folder:
            newest = max(
                int(folder.name) for folder in options.model.iterdir() if folder.name.isdecimal()
            )
            base = Path(folder, "model")
            shutil.copytree(options.model / str(newest), base / "1")
            target = Target(base, Path(folder))
            try:
                result = PARTS[part](target, options)
                result["alive"] = target.process.poll() is None or part in ("shutdown", "drain")
                result["log_mb"] = round(target.log.stat().st_size / MB, 2)
            finally:
                if target.process.poll() is None:
                    target.stop()
            is_met &= bool(result["alive"]) and bool(result.get("is_met", True))
            print(json.dumps({"part": part, **result}), flush=True)
    return 0 if is_met else 1


def abuse(target: Target, options: argparse.Namespace) -> dict[str, Any]:
    """Send invalid and huge requests from four threads, while a second client measures.

    The memory that the model itself needs for two full batches is measured first, and separately.
    """
    counts: Counter[str] = Counter()
    idle = target.status("VmRSS")
    full = [threading.Thread(target=target.post, args=(attacks.full_batch(),)) for _ in range(2)]
    for thread in full:
        thread.start()
    for thread in full:
        thread.join()
    before, numbers, lock = target.status("VmHWM"), iter(range(options.inputs)), threading.Lock()

    def attack() -> None:
        stub = create_stub(target)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            draw = random.Random(number)
            if number % 2:
                status = target.call(stub, attacks.grpc_attack(draw, target.name, number))
            else:
                status = str(target.post(*attacks.rest_attack(draw, target.name, number)))
            with lock:
                counts[status] += 1

    with second_client(target) as samples:
        threads = [threading.Thread(target=attack) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    peak = target.status("VmHWM") - before
    errors = counts["500"] + counts["INTERNAL"] + counts["UNKNOWN"]
    health = describe(samples)
    return {
        "inputs": options.inputs,
        "statuses": dict(counts.most_common()),
        "full_batches_mb": round(before - idle),
        "peak_mb": round(peak),
        "health": health,
        "is_met": not errors and peak <= 500 and health["p99_ms"] <= 100,
    }


def processor(target: Target, options: argparse.Namespace) -> dict[str, Any]:
    """Send the worst requests one by one, and measure the processor time of each."""
    seconds, stub = {}, create_stub(target)
    for name, body in attacks.worst_bodies():
        seconds[name] = _measure(target, lambda body=body: target.post(body))  # type: ignore[misc]
    for number in range(0, 24, 2):
        message = attacks.grpc_attack(random.Random(number), target.name, number, size=15 * MB)
        seconds[f"gRPC {number}"] = _measure(
            target,
            lambda message=message: target.call(stub, message),  # type: ignore[misc]
        )
    worst = max(seconds, key=seconds.__getitem__)
    return {"seconds": seconds, "worst": worst, "is_met": seconds[worst] <= 2}


def scripts(target: Target, options: argparse.Namespace) -> dict[str, Any]:
    """Measure how processor time grows with the length of a text in each script."""
    slopes = {}
    for name, word in SCRIPTS.items():
        points = []
        for power in range(10, 22, 2):
            text = (word * (2**power // len(word) + 1))[: 2**power]
            body = json.dumps({"instances": [text]}).encode()
            if len(body) < 16 * MB:
                times = [_measure(target, lambda body=body: target.post(body)) for _ in range(3)]  # type: ignore[misc]
                points.append((power * math.log(2), math.log(max(min(times), 0.005))))
        slopes[name] = round(statistics.linear_regression(*zip(*points, strict=True)).slope, 2)
    return {"slopes": slopes, "is_met": max(slopes.values()) <= 1.1}


def connections(target: Target, options: argparse.Namespace) -> dict[str, Any]:
    """Open many slow connections to both ports, while normal clients send requests to both."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    statuses: list[int] = []
    grpc_statuses: list[str] = []
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
    beginnings = [preface, b"", preface[:10]]
    message = attacks.predict_message(target.name, ["20 Nov 2026"])

    def call() -> str:
        with open_channel(target) as channel:
            return target.call(channel.unary_unary(PREDICT), message)

    async def attack() -> None:
        opened = []
        for number in range(options.connections):
            port = target.rest_port if number % 4 else target.grpc_port
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                is_rest = port == target.rest_port
                request = b"POST / HTTP/1.1\r\nHost: localhost\r\nX: "
                writer.write(request if is_rest else beginnings[number // 4 % 3])
                opened.append(writer)
            if number % 10 == 0:
                body = json.dumps({"instances": ["20 Nov 2026"]}).encode()
                statuses.append(await asyncio.to_thread(target.post, body))
                grpc_statuses.append(await asyncio.to_thread(call))
        for writer in opened:
            writer.close()

    asyncio.run(attack())
    answered = {
        "REST": sum(status == 200 for status in statuses) / len(statuses),
        "gRPC": sum(status == "OK" for status in grpc_statuses) / len(grpc_statuses),
    }
    log_mb = target.log.stat().st_size / MB
    return {
        "connections": options.connections,
        "normal_requests": {"REST": len(statuses), "gRPC": len(grpc_statuses)},
        "answered": answered,
        "statuses": dict(Counter([*map(str, statuses), *grpc_statuses])),
        "log_mb": round(log_mb, 3),
        "is_met": min(answered.values()) >= 0.999 and log_mb <= 1,
    }


def swaps(target: Target, options: argparse.Namespace) -> dict[str, Any]:
    """Replace the version again and again under load."""
    base, failed, sizes = target.log.parent / "model", 0, []
    is_over = threading.Event()

    def send() -> int:
        failures = 0
        while not is_over.is_set():
            failures += target.post(json.dumps({"instances": ["20 Nov 2026"]}).encode()) != 200
        return failures

    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(send())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for version in range(2, options.swaps + 2):
        shutil.copytree(base / str(version - 1), base.parent / "next")
        (base.parent / "next").rename(base / str(version))
        while f"unloaded version {version - 1}\n" not in target.log.read_text():
            time.sleep(0.1)
        shutil.rmtree(base / str(version - 1))
        sizes.append(target.status("VmRSS"))
    is_over.set()
    for thread in threads:
        thread.join()
    failed = sum(results)
    half = len(sizes) // 2
    growth = (sizes[-1] - sizes[half]) / max(len(sizes) - half - 1, 1)
    return {
        "swaps": options.swaps,
        "failed": failed,
        "mb_each": round(growth, 2),
        "is_met": not failed and growth <= 2,
    }


def shapes(target: Target, options: argparse.Namespace) -> dict[str, Any]:
    """Send valid requests of varied numbers of rows and lengths, and watch the memory."""
    draw, stub = random.Random(1), create_stub(target)
    sizes, statuses = [], Counter[str]()
    calls: collections.deque[Any] = collections.deque()  # at most 32 at once
    for number in range(options.requests + 32):
        if number < options.requests:
            rows = draw.choice([1, 1, 1, 2, 3, 5, 8])
            texts = ["x" * draw.randrange(1, 60) for _ in range(rows)]
            calls.append(stub.future(attacks.predict_message(target.name, texts), timeout=120))
        if number >= 32:
            statuses[calls.popleft().code().name] += 1
        if number % 1000 == 999:
            sizes.append(target.status("VmRSS"))
    warm = max(len(sizes) // 10, 1)
    growth = sizes[-1] - sizes[warm - 1]
    return {
        "requests": options.requests,
        "statuses": dict(statuses),
        "mb_at_start": round(sizes[0]),
        "mb_after_warm_up": round(sizes[warm - 1]),
        "growth_mb": round(growth),
        "is_met": growth <= 100 and set(statuses) == {"OK"},
    }


def shutdown(target: Target, options: argparse.Namespace) -> dict[str, Any]:
    """Send SIGTERM while the server works on the worst requests."""
    threads = [
        threading.Thread(target=target.post, args=(body,), daemon=True)
        for _, body in attacks.worst_bodies()
    ]
    for thread in threads:
        thread.start()
    time.sleep(1)
    seconds = target.stop()
    return {"seconds": round(seconds, 1), "is_met": seconds <= 35}


def latency(target: Target, options: argparse.Namespace) -> dict[str, Any]:
    """Send requests of one client, one by one, over connections that stay open."""
    connection = http.client.HTTPConnection("127.0.0.1", target.rest_port, timeout=60)
    path, body = f"/v1/models/{target.name}", json.dumps({"instances": ["20 Nov 2026"]})
    stub, message = create_stub(target), attacks.predict_message(target.name, ["20 Nov 2026"])

    def send(method: str, path: str, body: str | None = None) -> None:
        connection.request(method, path, body)
        connection.getresponse().read()

    calls: dict[str, Callable[[], object]] = {
        "status, REST": lambda: send("GET", path),
        "prediction, REST": lambda: send("POST", f"{path}:predict", body),
        "prediction, gRPC": lambda: stub(message, timeout=60),
    }
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(_LATENCY_ROUNDS):
        for name, call in calls.items():
            started = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - started)
    p50 = {
        name: round(1000 * statistics.median(durations), 2) for name, durations in seconds.items()
    }
    ratio = round(p50["prediction, REST"] / p50["prediction, gRPC"], 2)
    return {"p50_ms": p50, "ratio": ratio, "is_met": p50["status, REST"] <= 2 and ratio <= 1.3}


def protocol(target: Target, options: argparse.Namespace) -> dict[str, Any]:
    """Abuse HTTP/1.1 and HTTP/2, while a client of each API measures before and meanwhile."""
    results: dict[str, dict[str, dict[str, float]]] = {}
    for name in protocol_attacks.NAMES:
        with second_client(target) as rest, second_client(target, "gRPC") as grpc:
            time.sleep(options.seconds)
            started = time.monotonic()
            end = started + options.seconds
            protocol_attacks.attack(name, target.name, target.rest_port, target.grpc_port, end)
        results[name] = {
            f"{api}, {phase}": describe(
                [sample for sample in samples if (sample[0] >= started) == is_late]
            )
            for api, samples in (("REST", rest), ("gRPC", grpc))
            for phase, is_late in (("before", False), ("meanwhile", True))
        }
        print(json.dumps({name: results[name]}), flush=True)
    attacked = [
        values
        for phases in results.values()
        for key, values in phases.items()
        if "meanwhile" in key
    ]
    worst = {key: max(values[key] for values in attacked) for key in ("p99_ms", "max_ms")}
    return {**worst, "is_met": worst["p99_ms"] <= 100 and worst["max_ms"] <= 1000}


def drain(target: Target, options: argparse.Namespace) -> dict[str, Any]:
    """Send SIGTERM while 32 clients of each API use their connections all the time."""
    counts: Counter[str] = Counter()
    message = attacks.predict_message(target.name, ["20 Nov 2026"])

    def use_rest() -> None:
        connection = None
        while True:
            if connection is None:
                connection = http.client.HTTPConnection("127.0.0.1", target.rest_port, timeout=60)
                try:
                    connection.connect()
                except ConnectionRefusedError:
                    return
            try:
                connection.request("GET", f"/v1/models/{target.name}")
                response = connection.getresponse()
                response.read()
            except (OSError, http.client.HTTPException) as error:
                counts[f"REST {type(error).__name__}"] += 1
                return
            counts["REST"] += 1
            if response.will_close:
                connection.close()
                connection = None

    def use_grpc() -> None:
        with open_channel(target) as channel:
            stub = channel.unary_unary(PREDICT)
            while (status := target.call(stub, message)) == "OK":
                counts["gRPC"] += 1
            if status != "UNAVAILABLE":  # the status of a client that cannot connect any more
                counts[f"gRPC {status}"] += 1

    threads = [threading.Thread(target=use) for use in [use_rest, use_grpc] * 32]
    for thread in threads:
        thread.start()
    time.sleep(options.seconds)
    target.stop()
    for thread in threads:
        thread.join()
    return {"requests": dict(counts), "is_met": set(counts) == {"REST", "gRPC"}}


PARTS: dict[str, Callable[[Target, argparse.Namespace], dict[str, Any]]] = {
    "abuse": abuse,
    "processor": processor,
    "scripts": scripts,
    "connections": connections,
    "swaps": swaps,
    "shapes": shapes,
    "shutdown": shutdown,
    "latency": latency,
    "protocol": protocol,
    "drain": drain,
}


def _measure(target: Target, send: Callable[[], object]) -> float:
    """Return the processor seconds of the server for one request."""
    before = target.processor_seconds()
    send()
    return round(target.processor_seconds() - before, 2)
