"""Counters and histograms under TensorFlow Serving's names, in Prometheus's text format."""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_INVALID = re.compile(r"[^a-zA-Z0-9_]")
_PREFIX = "/tensorflow/serving"
Labels = tuple[tuple[str, str], ...]


def exponential_edges(scale: float, growth: float, count: int) -> tuple[float, ...]:
    """Return the upper edges of buckets that grow by a factor."""
    return tuple(scale * growth**i for i in range(count))


_LATENCY_EDGES = exponential_edges(10, 1.8, 33)  # microseconds
_QUEUE_EDGES = exponential_edges(100, 1.2, 52)  # microseconds
_ROW_EDGES, _BATCH_EDGES = exponential_edges(1, 2, 15), exponential_edges(1, 2, 14)


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
    """Counters, gauges and histograms by name and labels."""

    def __init__(self) -> None:
        self._counters: dict[str, dict[Labels, int]] = defaultdict(lambda: defaultdict(int))
        self._gauges: dict[str, dict[Labels, int]] = defaultdict(dict)
        self._histograms: dict[str, dict[Labels, _Histogram]] = defaultdict(dict)

    def count_request(
        self, model: str, api: str, entry_point: str, status: str, seconds: float
    ) -> None:
        """Count one finished request.

        Args:
            model: the model's name.
            api: ``predict`` over REST, ``Predict`` over gRPC.
            entry_point: ``REST`` or ``GRPC``.
            status: the name of the status code.
            seconds: its latency, recorded for successful requests.
        """
        labels = {"model_name": model, "status": status}
        self._count(f"{_PREFIX}/request_count", labels)
        if status == "OK":
            labels = {"model_name": model, "API": api, "entrypoint": entry_point}
            self._observe(f"{_PREFIX}/request_latency", labels, 1e6 * seconds, _LATENCY_EDGES)

    def count_rows(self, model: str, rows: int) -> None:
        """Record the rows of one request."""
        labels = {"model": model}
        self._observe(f"{_PREFIX}/request_example_counts", labels, rows, _ROW_EDGES)
        self._count(f"{_PREFIX}/request_example_count_total", labels, rows)

    def observe_runtime(self, model: str, seconds: float) -> None:
        """Record the time of one model execution."""
        # TensorFlow Serving labels SavedModels with this runtime.
        labels = {"model_name": model, "API": "Predict", "runtime": "TF1"}
        self._observe(f"{_PREFIX}/runtime_latency", labels, 1e6 * seconds, _LATENCY_EDGES)

    def observe_batch(self, rows: int, seconds: float) -> None:
        """Record the size of a batch, and how long its first request waited."""
        prefix = f"{_PREFIX}/batching_session"
        pool = {"thread_pool_name": "batch_threads"}
        self._observe(f"{prefix}/queuing_latency", pool, 1e6 * seconds, _QUEUE_EDGES)
        self._count(f"{prefix}/wrapped_run_count", {})
        self._observe(f"{prefix}/processed_batch_size", {}, rows, _BATCH_EDGES)

    def observe_warm_up(self, model: str, requests: int, seconds: float) -> None:
        """Record the warm-up of one version."""
        labels = {"model_path": model, "status": "OK"}
        prefix = f"{_PREFIX}/model_warmup"
        self._count(f"{prefix}_records_read", labels, requests)
        self._observe(f"{prefix}_latency", labels, 1e6 * seconds, _LATENCY_EDGES)

    def record_origin(self, model: str, version: int) -> None:
        """Record that a version with a run identifier is served; the gauge's value is always 0."""
        labels = {"model_name": model, "version": str(version)}
        self._gauges[f"{_PREFIX}/mlmd_map"][tuple(labels.items())] = 0

    def text(self) -> str:
        """Return all metrics in Prometheus's text format."""
        lines: list[str] = []
        for kind, metrics in (("counter", self._counters), ("gauge", self._gauges)):
            for name, values in sorted(metrics.items()):
                public = _public_name(name)
                lines.append(f"# TYPE {public} {kind}")
                lines += [f"{public}{_format(labels)} {n}" for labels, n in sorted(values.items())]
        for name, histograms in sorted(self._histograms.items()):
            public = _public_name(name)
            lines.append(f"# TYPE {public} histogram")
            for labels, histogram in sorted(histograms.items()):
                lines += _histogram_lines(public, labels, histogram)
        return "\n".join(lines) + "\n"

    def _count(self, name: str, labels: Mapping[str, str], by: int = 1) -> None:
        self._counters[name][tuple(labels.items())] += by

    def _observe(
        self, name: str, labels: Mapping[str, str], value: float, edges: Sequence[float]
    ) -> None:
        key = tuple(labels.items())
        self._histograms[name].setdefault(key, _Histogram(edges)).add(value)


def _histogram_lines(name: str, labels: Labels, histogram: _Histogram) -> list[str]:
    lines, cumulative = [], 0
    edges = [f"{edge:g}" for edge in histogram.edges] + ["+Inf"]
    for edge, count in zip(edges, histogram.counts, strict=True):
        cumulative += count
        lines.append(f"{name}_bucket{_format((*labels, ('le', edge)))} {cumulative}")
    lines.append(f"{name}_sum{_format(labels)} {histogram.total:g}")
    lines.append(f"{name}_count{_format(labels)} {cumulative}")
    return lines


def _public_name(name: str) -> str:
    """Return a valid Prometheus name: ``:tensorflow:serving:request_count``."""
    return _INVALID.sub(":", name)


def _format(labels: Labels) -> str:
    def escape(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{escape(value)}"' for name, value in labels) + "}"
