"""The time that a schedule goes by, and whether somebody asks it to stop."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone

_SLICE = 0.5  # seconds until a signal is obeyed


class Clock:
    """The machine's clock; ``stops`` says how often we were asked to stop."""

    def __init__(self) -> None:
        self.stops = 0

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Lets so much time pass, less where somebody asks to stop."""
        end = time.monotonic() + seconds
        while not self.stops and (rest := end - time.monotonic()) > 0:
            time.sleep(min(rest, _SLICE))

    @contextmanager
    def listening(self) -> Iterator[Clock]:
        """Counts SIGINT and SIGTERM, instead of ending at them."""

        def stop(*_: object) -> None:
            self.stops += 1

        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, stop) for number in numbers]
        try:
            yield self
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)


def moment(seconds: float) -> datetime:
    """Seconds since 1970 as a time in UTC."""
    return datetime.fromtimestamp(seconds, timezone.utc)
