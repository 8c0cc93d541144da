"""Requests at a fixed rate to a server in the cluster, counted by result.

    python -m benchmarks.cluster.node.load ADDRESS MODEL --rate 10 --seconds 600

Each request uses a connection of its own, so that the service chooses a pod for each. Without
`--client` it is never repeated. The program ends after the given time, or when its standard input
ends, and prints a line of JSON.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import functools
import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.cluster.node.machine import Machine
from regard.serving.client import Client, ClientError

TEXT = "20 November 2026"
PORT = 8501
_TIMEOUT = 30.0  # seconds of a request
_THREADS = 256
_MAX_SECONDS = 1800.0


@dataclasses.dataclass
class Result:
    """What became of the requests.

    Attributes:
        requests: the number of requests.
        failures: the number of failed requests by reason.
        first_failures: seconds from the start to the first failures, at most ten.
        outputs: the number of responses by output.
        p50: median duration in seconds.
        p99: 99th percentile in seconds.
        maximum: the longest duration in seconds.
    """

    requests: int
    failures: dict[str, int]
    first_failures: list[float]
    outputs: dict[str, int]
    p50: float
    p99: float
    maximum: float

    @property
    def failed(self) -> int:
        """The number of failed requests."""
        return sum(self.failures.values())


class Load:
    """Requests of a machine while a scenario runs; ``result`` is there at the end."""

    result: Result


@contextlib.contextmanager
def run(machine: Machine, address: str, model: str, rate: float, *, client: bool) -> Iterator[Load]:
    """Send requests from a machine until the end of the block.

    Args:
        machine: where the requests come from.
        address: of the service.
        model: its name.
        rate: requests per second.
        client: whether they come from Regard's client.
    """
    options = [f"--rate={rate}", *(["--client"] if client else [])]
    command = [sys.executable, "-m", "benchmarks.cluster.node.load", address, model, *options]
    load = Load()
    process = subprocess.Popen(
        machine.enter("env", f"PYTHONPATH={Path(__file__).parents[3]}", *command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield load
        output, _ = process.communicate("")
        load.result = Result(**json.loads(output))
    finally:
        process.kill()
        process.wait()


def send(address: str, model: str) -> str:
    """Send a request once, and return the output.

    Raises:
        OSError, http.client.HTTPException: there is no response.
        ValueError: the response is not a prediction.
    """
    connection = http.client.HTTPConnection(address, PORT, timeout=_TIMEOUT)
    with contextlib.closing(connection):
        body = json.dumps({"instances": [TEXT]})
        connection.request("POST", f"/v1/models/{model}:predict", body)
        response = connection.getresponse()
        content = response.read()
    if response.status != 200:
        raise ValueError(f"status {response.status}")
    return str(json.loads(content)["predictions"][0]["translation"])


def send_with_client(address: str, model: str) -> str:
    """Send a request with Regard's client, which repeats it while the server is unavailable.

    Raises:
        ClientError: the client gives up.
    """
    with Client(f"http://{address}:{PORT}", model=model, timeout=_TIMEOUT) as client:
        return str(client.predict([TEXT])[0]["translation"])


class Counter:
    """Counts requests by result, and measures them.

    Args:
        function: sends a request, and returns the output.
    """

    def __init__(self, function: Callable[[], str]):
        self._function = function
        self._failures: collections.Counter[str] = collections.Counter()
        self._outputs: collections.Counter[str] = collections.Counter()
        self._seconds: list[float] = []
        self._first: list[float] = []
        self._start = time.monotonic()
        self._lock = threading.Lock()

    def send(self) -> None:
        """Send a request."""
        start = time.monotonic()
        output = reason = ""
        try:
            output = self._function()
        except (OSError, http.client.HTTPException, ValueError, ClientError) as error:
            text = str(error) if isinstance(error, ValueError) else ""
            reason = getattr(error, "code", text) or type(error).__name__
        end = time.monotonic()
        with self._lock:
            self._seconds.append(end - start)
            if reason:
                self._failures[reason] += 1
                self._first.append(start - self._start)
            else:
                self._outputs[output] += 1

    def result(self) -> Result:
        """Return the counts; at least two requests must have ended."""
        with self._lock:
            quantiles = statistics.quantiles(self._seconds, n=100)
            return Result(
                requests=len(self._seconds),
                failures=dict(self._failures),
                first_failures=[round(value, 1) for value in sorted(self._first)[:10]],
                outputs=dict(self._outputs),
                p50=round(statistics.median(self._seconds), 4),
                p99=round(quantiles[98], 4),
                maximum=round(max(self._seconds), 4),
            )


def main() -> None:
    """Send the requests, and print the result."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster.node.load")
    parser.add_argument("address")
    parser.add_argument("model")
    parser.add_argument("--rate", type=float, default=10, help="requests per second")
    parser.add_argument("--seconds", type=float, default=_MAX_SECONDS, help="at most")
    parser.add_argument("--client", action="store_true", help="use Regard's client")
    options = parser.parse_args()
    function = send_with_client if options.client else send
    counter = Counter(functools.partial(function, options.address, options.model))
    ended = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    start = time.monotonic()
    with ThreadPoolExecutor(_THREADS) as executor:
        for number in range(int(min(options.seconds, _MAX_SECONDS) * options.rate)):
            if ended.wait(max(0.0, start + number / options.rate - time.monotonic())):
                break
            executor.submit(counter.send)
    print(json.dumps(dataclasses.asdict(counter.result())))


if __name__ == "__main__":
    main()
