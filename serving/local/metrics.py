"""What is counted, under TensorFlow Serving's names, in the text format of Prometheus."""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_NO_NAME = re.compile(r"[^a-zA-Z0-9_]")
Labels = tuple[tuple[str, str], ...]


def exponential(scale: float, growth: float, count: int) -> tuple[float, ...]:
    """The upper edges of buckets that grow by a factor."""
    return tuple(scale * growth**i for i in range(count))


# Microseconds, microseconds in a queue, rows of a request, rows of a batch.
_TIMES, _WAITS = exponential(10, 1.8, 33), exponential(100, 1.2, 52)
_ROWS, _SIZES = exponential(1, 2, 15), exponential(1, 2, 14)


@dataclass
class _Histogram:
    edges: Sequence[float]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def add(self, value: float) -> None:
        if not self.counts:
            self.counts = [0] * (len(self.edges) + 1)
        self.counts[bisect.bisect_left(self.edges, value)] += 1
        self.total += value


class Metrics:
    """Counters and histograms by name and labels."""

    def __init__(self) -> None:
        self._counters: dict[str, dict[Labels, int]] = defaultdict(lambda: defaultdict(int))
        self._gauges: dict[str, dict[Labels, int]] = defaultdict(dict)
        self._histograms: dict[str, dict[Labels, _Histogram]] = defaultdict(dict)

    def request(self, model: str, api: str, entry: str, status: str, seconds: float) -> None:
        """A request was answered, or refused.

        Args:
            model: its name.
            api: ``predict`` over REST, ``Predict`` over gRPC.
            entry: ``REST`` or ``GRPC``.
            status: the name of the code.
            seconds: how long it took.
        """
        labels = {"model_name": model, "status": status}
        self._count("/tensorflow/serving/request_count", labels)
        if status == "OK":
            name = "/tensorflow/serving/request_latency"
            labels = {"model_name": model, "API": api, "entrypoint": entry}
            self._observe(name, labels, 1e6 * seconds, _TIMES)

    def rows(self, model: str, rows: int) -> None:
        """So many rows were in a request."""
        labels = {"model": model}
        self._observe("/tensorflow/serving/request_example_counts", labels, rows, _ROWS)
        self._count("/tensorflow/serving/request_example_count_total", labels, rows)

    def ran(self, model: str, seconds: float) -> None:
        """A model computed so long."""
        labels = {"model_name": model, "API": "Predict", "runtime": "TF1"}  # as they call it
        self._observe("/tensorflow/serving/runtime_latency", labels, 1e6 * seconds, _TIMES)

    def batch(self, rows: int, filled: int, waited: float) -> None:
        """A batch was put together, and how long its first request waited for that."""
        prefix = "/tensorflow/serving/batching_session"
        pool = {"thread_pool_name": "batch_threads"}
        self._observe(f"{prefix}/queuing_latency", pool, 1e6 * waited, _WAITS)
        self._count(f"{prefix}/wrapped_run_count", {})
        size = {"execution_batch_size": str(rows + filled)}
        self._observe(f"{prefix}/padding_size", size, filled, _SIZES)
        self._observe(f"{prefix}/input_batch_size", {}, rows, _SIZES)
        self._observe(f"{prefix}/processed_batch_size", {}, rows + filled, _SIZES)

    def warmed(self, model: str, requests: int, seconds: float) -> None:
        """A model answered its warm-up requests."""
        labels = {"model_path": model, "status": "OK"}
        prefix = "/tensorflow/serving/model_warmup"
        self._count(f"{prefix}_records_read", labels, requests)
        self._observe(f"{prefix}_latency", labels, 1e6 * seconds, _TIMES)

    def identified(self, model: str, version: int) -> None:
        """A version that says which run made it is served.

        Prometheus knows no texts: as in TensorFlow Serving only the labels tell, the value is 0.
        """
        labels = {"model_name": model, "version": str(version)}
        self._gauges["/tensorflow/serving/mlmd_map"][tuple(labels.items())] = 0

    def text(self) -> str:
        """All of it, for Prometheus."""
        lines: list[str] = []
        for kind, numbers in (("counter", self._counters), ("gauge", self._gauges)):
            for name, values in sorted(numbers.items()):
                public = _public(name)
                lines.append(f"# TYPE {public} {kind}")
                lines += [f"{public}{_braces(labels)} {n}" for labels, n in sorted(values.items())]
        for name, histograms in sorted(self._histograms.items()):
            public = _public(name)
            lines.append(f"# TYPE {public} histogram")
            for labels, one in sorted(histograms.items()):
                lines += _histogram_lines(public, labels, one)
        return "\n".join(lines) + "\n"

    def _count(self, name: str, labels: Mapping[str, str], by: int = 1) -> None:
        self._counters[name][tuple(labels.items())] += by

    def _observe(
        self, name: str, labels: Mapping[str, str], value: float, edges: Sequence[float]
    ) -> None:
        key = tuple(labels.items())
        found = self._histograms[name].setdefault(key, _Histogram(edges))
        found.add(value)


def _histogram_lines(name: str, labels: Labels, histogram: _Histogram) -> list[str]:
    lines, count = [], 0
    edges = [f"{edge:g}" for edge in histogram.edges] + ["+Inf"]
    for edge, number in zip(edges, histogram.counts, strict=True):
        count += number
        lines.append(f"{name}_bucket{_braces((*labels, ('le', edge)))} {count}")
    lines.append(f"{name}_sum{_braces(labels)} {histogram.total:g}")
    lines.append(f"{name}_count{_braces(labels)} {count}")
    return lines


def _public(name: str) -> str:
    """A name as Prometheus may have it: ``:tensorflow:serving:request_count``."""
    return _NO_NAME.sub(":", name)


def _braces(labels: Labels) -> str:
    def escaped(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels) + "}"
