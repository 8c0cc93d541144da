"""A client in another process, which measures the latency of a server that is attacked."""

from __future__ import annotations

import contextlib
import http.client
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.trust._target import Target

_PAUSE_SECONDS = 0.05
_MAX_SECONDS = 60.0
Sample = tuple[float, float]  # when a request was sent, and its latency, in seconds


@contextlib.contextmanager
def second_client(target: Target, api: str = "REST") -> Iterator[list[Sample]]:
    """Ask for the state of the server every 50 ms, and yield the latencies at the end.

    Args:
        target: the server.
        api: ``REST``: the state of the model, each time over a new connection; ``gRPC``: health.
    """
    samples: list[Sample] = []
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    is_over = context.Event()
    port = target.rest_port if api == "REST" else target.grpc_port
    arguments = (api, port, target.name, sender, is_over)
    process = context.Process(target=_measure, args=arguments, daemon=True)
    process.start()
    sender.close()  # so that the end of the process ends the wait for what it sends
    receiver.recv()  # it has begun
    try:
        yield samples
    finally:
        is_over.set()
        samples.extend(receiver.recv())
        process.join()


def describe(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the number of samples, their percentiles in ms, and the largest."""
    latencies = [latency for _, latency in samples]
    cuts = statistics.quantiles(latencies, n=100)
    values = {"p50": cuts[49], "p99": cuts[98], "max": max(latencies)}
    return {f"{name}_ms": round(1000 * value, 1) for name, value in values.items()}


def _measure(api: str, port: int, name: str, sender: Any, is_over: Any) -> None:
    send = _create_rest(port, name) if api == "REST" else _create_grpc(port)
    send()
    sender.send("ready")
    samples = []
    while not is_over.is_set():
        started = time.monotonic()
        send()
        samples.append((started, time.monotonic() - started))
        time.sleep(_PAUSE_SECONDS)
    sender.send(samples)


def _create_rest(port: int, name: str) -> Callable[[], None]:
    def send() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_MAX_SECONDS)
        with contextlib.closing(connection):
            connection.request("GET", f"/v1/models/{name}")
            response = connection.getresponse()
            response.read()
            assert response.status == 200

    return send


def _create_grpc(port: int) -> Callable[[], None]:
    import grpc

    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    check = channel.unary_unary("/grpc.health.v1.Health/Check")
    return lambda: check(b"", timeout=_MAX_SECONDS)
