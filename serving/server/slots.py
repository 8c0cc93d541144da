"""How many batches run at once, and which share of them is reserved for small requests."""

import asyncio
import time
from collections import deque

# How long after a small request the large ones leave a thread free for the next one.
_RESERVE_SECONDS = 2.0


class SmallSlots:
    """The places of batches of small requests.

    Args:
        threads: how many there are.
        large: the places of large requests, which then leave one thread free.
    """

    def __init__(self, threads: int, large: "LargeSlots"):
        self._semaphore, self._large = asyncio.Semaphore(threads), large

    async def __aenter__(self) -> None:
        self._large.reserve()
        await self._semaphore.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._large.reserve()
        self._semaphore.release()


class LargeSlots:
    """The places of batches with large requests, in the order of their arrival.

    They use all threads while there are no small requests, otherwise all but one.

    Args:
        threads: how many batches may run at once.
    """

    def __init__(self, threads: int):
        self._threads, self._running = threads, 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._reserved_until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def reserve(self) -> None:
        """Leave a thread free for some time."""
        self._reserved_until = time.monotonic() + _RESERVE_SECONDS
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_RESERVE_SECONDS, self._end_reservation)

    async def __aenter__(self) -> None:
        if not self._waiting and self._running < self._limit():
            self._running += 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place  # whoever sets its result has counted it as running
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._release()

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _limit(self) -> int:
        is_reserved = time.monotonic() < self._reserved_until
        return max(self._threads - 1, 1) if is_reserved else self._threads

    def _release(self) -> None:
        self._running -= 1
        self._start_waiting()

    def _start_waiting(self) -> None:
        while self._waiting and self._running < self._limit():
            place = self._waiting.popleft()
            if not place.done():
                self._running += 1
                place.set_result(None)

    def _end_reservation(self) -> None:
        self._timer = None
        rest = self._reserved_until - time.monotonic()
        if rest > 0:
            self._timer = asyncio.get_running_loop().call_later(rest, self._end_reservation)
        else:
            self._start_waiting()
