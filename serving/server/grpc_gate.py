"""Holds back the responses of gRPC while the server begins to stop."""

import asyncio
import time

_QUIET_SECONDS, _MAX_SECONDS = 0.1, 1.0


class ResponseGate:
    """Lets responses pass, except at the beginning of the end.

    When gRPC's server stops, it asks its clients to leave, and cancels the calls that nobody has
    begun to handle. A client that waits for a response sends no such calls. So the server holds
    back all responses, begins to stop when no more calls arrive, and then lets the responses pass:
    their clients have already read that they have to leave.
    """

    def __init__(self) -> None:
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._calls = 0

    def count_call(self) -> None:
        """Note that the server handles a new call."""
        self._calls += 1

    async def wait(self) -> None:
        """Wait until responses may pass."""
        await self._is_open.wait()

    async def close(self) -> None:
        """Hold back responses, and wait until no more calls arrive, at most for a second."""
        self._is_open.clear()
        end, calls = time.monotonic() + _MAX_SECONDS, -1
        while calls != self._calls and time.monotonic() < end:
            calls = self._calls
            await asyncio.sleep(_QUIET_SECONDS)

    def open(self) -> None:
        """Let all responses pass."""
        self._is_open.set()
