"""A client that sends one sentence after the other, and counts failures."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Sequence
from typing import Any

_TIMEOUT = 60.0
_ERRORS = 5  # kept of each interval


class Client(threading.Thread):
    """Sends sentences at a constant rate over one connection, which it opens again after an error.

    Args:
        port: the REST port of the server on the loopback interface.
        model: the name of the model.
        sentences: the sentences to draw from.
        rate: sentences per second.
    """

    def __init__(self, port: int, model: str, sentences: Sequence[str], rate: float):
        super().__init__(daemon=True)
        self._port, self._path = port, f"/v1/models/{model}:predict"
        self._sentences, self._interval = sentences, 1 / rate
        self._draw = random.Random(0)
        self._lock = threading.Lock()
        self._latencies: list[float] = []
        self._errors: list[str] = []
        self._stopped = threading.Event()

    def run(self) -> None:
        """Send sentences until `stop`."""
        connection = self._connect()
        due = time.monotonic()
        while not self._stopped.is_set():
            started = time.monotonic()
            error = ""
            try:
                self._request(connection)
            except (OSError, ValueError, http.client.HTTPException) as failure:
                error = f"{type(failure).__name__}: {failure}"[:300]
                connection.close()
                connection = self._connect()
            with self._lock:
                if error:
                    self._errors.append(error)
                else:
                    self._latencies.append(time.monotonic() - started)
            due = max(due + self._interval, time.monotonic() - 5)
            self._stopped.wait(max(due - time.monotonic(), 0))
        connection.close()

    def stop(self) -> None:
        """End after the current request."""
        self._stopped.set()

    def take(self) -> dict[str, Any]:
        """Return the counts and latencies in milliseconds since the last call."""
        with self._lock:
            latencies, errors = sorted(self._latencies), self._errors
            self._latencies, self._errors = [], []
        result: dict[str, Any] = {
            "requests": len(latencies) + len(errors),
            "failures": len(errors),
            "errors": sorted(set(errors))[:_ERRORS],
        }
        for percent in (50, 99, 100):
            if latencies:
                index = min(len(latencies) * percent // 100, len(latencies) - 1)
                result[f"p{percent}"] = round(1000 * latencies[index], 2)
        return result

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=_TIMEOUT)

    def _request(self, connection: http.client.HTTPConnection) -> None:
        """Send a sentence.

        Raises:
            OSError, HTTPException: the connection fails.
            ValueError: the answer is not a text with a score.
        """
        body = json.dumps({"instances": [self._draw.choice(self._sentences)]})
        connection.request("POST", self._path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise ValueError(f"status {response.status}: {content[:200]!r}")
        (prediction,) = json.loads(content)["predictions"]
        if not isinstance(prediction.get("translation"), str) or not prediction["score"] <= 0:
            raise ValueError(f"the prediction is {prediction!r}")
