"""Counters and histograms under TensorFlow Serving's names, in Prometheus's text format."""

import bisect
import time
from collections import defaultdict
from itertools import accumulate

_PREFIX = ":tensorflow:serving:"
Labels = tuple[tuple[str, str], ...]


def exponential_edges(scale: float, growth: float, count: int) -> tuple[float, ...]:
    """Return the upper edges of buckets that grow by a factor."""
    return tuple(scale * growth**i for i in range(count))


def microseconds_since(started: float) -> float:
    """Return the time since a moment of the monotonic clock."""
    return 1e6 * (time.monotonic() - started)


_LATENCY_EDGES = exponential_edges(10, 1.8, 33)  # microseconds
_EDGES = {
    "request_latency": _LATENCY_EDGES,
    "runtime_latency": _LATENCY_EDGES,
    "request_example_counts": exponential_edges(1, 2, 15),
    "batching_session:queuing_latency": exponential_edges(100, 1.2, 52),  # microseconds
    "batching_session:processed_batch_size": exponential_edges(1, 2, 14),
}


class Metrics:
    """Counters and histograms by name and labels."""

    def __init__(self) -> None:
        self._counters: dict[str, dict[Labels, int]] = defaultdict(lambda: defaultdict(int))
        self._counts: dict[str, dict[Labels, list[int]]] = {name: {} for name in _EDGES}
        self._sums: dict[tuple[str, Labels], float] = defaultdict(float)

    def count(self, name: str, by: int = 1, **labels: str) -> None:
        """Increase a counter."""
        self._counters[name][tuple(labels.items())] += by

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add a value to a histogram."""
        key, edges = tuple(labels.items()), _EDGES[name]
        counts = self._counts[name].setdefault(key, [0] * (len(edges) + 1))
        counts[bisect.bisect_left(edges, value)] += 1
        self._sums[name, key] += value

    def text(self) -> str:
        """Return all metrics in Prometheus's text format."""
        lines: list[str] = []
        for name, values in sorted(self._counters.items()):
            lines.append(f"# TYPE {_PREFIX}{name} counter")
            lines += [f"{_PREFIX}{name}{_format(key)} {n}" for key, n in sorted(values.items())]
        for name, histograms in sorted(self._counts.items()):
            if histograms:
                lines.append(f"# TYPE {_PREFIX}{name} histogram")
            for key, counts in sorted(histograms.items()):
                edges = [*(f"{edge:g}" for edge in _EDGES[name]), "+Inf"]
                for edge, total in zip(edges, accumulate(counts), strict=True):
                    lines.append(f"{_PREFIX}{name}_bucket{_format((*key, ('le', edge)))} {total}")
                lines.append(f"{_PREFIX}{name}_sum{_format(key)} {self._sums[name, key]:g}")
                lines.append(f"{_PREFIX}{name}_count{_format(key)} {sum(counts)}")
        return "\n".join(lines) + "\n"


def _format(labels: Labels) -> str:
    def escape(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{escape(value)}"' for name, value in labels) + "}"
