"""How much memory is held during a stretch of work, by this process and those that it started."""

from __future__ import annotations

import threading

import psutil

# Each look reads the whole table of processes.
INTERVAL_SECONDS = 1.0


class PeakMemory:
    """While the block runs, a thread looks how much memory this process and its children hold.

    :attr:`bytes` is the largest sum of their resident sets. What earlier work left in them counts
    too, pages that processes share count once for each, and a peak between two looks is missed.
    """

    def __init__(self, interval_seconds: float = INTERVAL_SECONDS):
        self.bytes = 0
        self._interval = interval_seconds
        self._process = psutil.Process()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="peak-memory", daemon=True)

    def __enter__(self) -> PeakMemory:
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._ended.wait(self._interval):
            self._look()

    def _look(self) -> None:
        total = self._process.memory_info().rss
        for child in self._process.children(recursive=True):
            try:
                total += child.memory_info().rss
            except psutil.Error:  # it has ended since
                continue
        self.bytes = max(self.bytes, total)
