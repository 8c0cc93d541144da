"""Which requests the server accepts: by token, by host name, and by the bytes of all together."""

import asyncio
import contextlib
import ctypes
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from grpc import StatusCode

from regard.serving.server.bearer_tokens import BearerTokens
from regard.serving.server.errors import ServingError
from regard.serving.server.options import LOOPBACK, ServerOptions

# A message up to this size is always accepted, and converted at once: it takes few milliseconds.
SMALL_BYTES = 32 << 10
_LARGE_MESSAGES = 16  # of the largest size, together
_TRIM_SECONDS = 1.0
P = ParamSpec("P")
T = TypeVar("T")


class Admission:
    """Accepts or rejects requests of both APIs.

    Args:
        options: the host names and the maximum size of a request.
        tokens: the tokens of clients; None: they need none.

    Attributes:
        max_total_bytes: limit for the requests in progress together, in bytes.
    """

    def __init__(self, options: ServerOptions, tokens: BearerTokens | None = None):
        self._tokens = tokens
        self._allowed_sites = options.allowed_hosts
        self._hosts = options.allowed_hosts or (LOOPBACK if options.host in LOOPBACK else ())
        self.max_total_bytes = _LARGE_MESSAGES * options.max_request_bytes
        self._total = 0
        self._trim: asyncio.TimerHandle | None = None
        self._pool = ThreadPoolExecutor(1, "convert")

    def check_token(self, authorization: str) -> None:
        """Check the value of the header ``authorization``, if clients need a token.

        Raises:
            ServingError: it is not ``Bearer``, in any case, and a token.
        """
        if self._tokens is None:
            return
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not self._tokens.contains(token):
            message = "The request needs the header `authorization: Bearer TOKEN`."
            raise ServingError(StatusCode.UNAUTHENTICATED, message)

    def check_host(self, host: str) -> None:
        """Check the header ``Host``, so that a web site cannot reach this server by its own name.

        Raises:
            ServingError: the server does not have this name.
        """
        if self._hosts and _host_name(host) not in self._hosts:
            raise ServingError(
                StatusCode.PERMISSION_DENIED,
                "The header `Host` does not name this server. `--allowed-host` adds names.",
            )

    def check_site(self, host: str, origin: str, fetch_site: str) -> None:
        """Check that a browser does not send a request for another web site.

        Args:
            host: the header ``Host``.
            origin: the header ``Origin``, in which old browsers name the site.
            fetch_site: the header ``Sec-Fetch-Site``, in which others compare it with this server.

        Raises:
            ServingError: the site is another one, and ``--allowed-host`` does not name it.
        """
        address = origin.partition("://")[2].lower()
        if fetch_site:
            is_same = fetch_site in ("same-origin", "none")
        else:
            is_same = not origin or address == host.lower()
        if not is_same and _host_name(address) not in self._allowed_sites:
            raise ServingError(
                StatusCode.PERMISSION_DENIED,
                "The request comes from another web site. `--allowed-host` adds its name.",
            )

    @contextlib.contextmanager
    def hold(self) -> Iterator[Callable[[int], None]]:
        """Count the bytes of a request until the end of the block.

        Yields:
            A function that adds bytes. It raises a ServingError if the requests in progress would
            hold too many bytes together; a small request is always accepted.
        """
        size = 0

        def add(more: int) -> None:
            nonlocal size
            if size + more > SMALL_BYTES and self._total + more > self.max_total_bytes:
                message = "The server holds too much data. Try again later."
                raise ServingError(StatusCode.UNAVAILABLE, message)
            size += more
            self._total += more

        try:
            yield add
        finally:
            self._total -= size

    async def convert(
        self, size: int, function: Callable[P, T], *args: P.args, **options: P.kwargs
    ) -> T:
        """Call a function that reads or writes a message, a large one outside of the event loop.

        Args:
            size: the size of the message in bytes.
            function: the conversion.
            args: its arguments.
            options: its named arguments.
        """
        if size <= SMALL_BYTES:
            return function(*args, **options)
        loop = asyncio.get_running_loop()
        if self._trim is None:
            self._trim = loop.call_later(_TRIM_SECONDS, self._return_memory)
        return await loop.run_in_executor(self._pool, lambda: function(*args, **options))

    def _return_memory(self) -> None:
        self._trim = None
        self._pool.submit(return_free_memory)

    def close(self) -> None:
        """End the thread."""
        if self._trim is not None:
            self._trim.cancel()
        self._pool.shutdown(cancel_futures=True)


def _host_name(address: str) -> str:
    """Return the name in ``HOST:PORT`` or ``[HOST]:PORT``."""
    return re.sub(r":\d*$", "", address).strip("[]").lower()


def return_free_memory() -> None:
    """Return what the C library keeps of freed memory to the system; glibc only."""
    with contextlib.suppress(AttributeError):
        # Without it a large request leaves 450 MB, with it 200 MB; delete it if that changes.
        ctypes.CDLL(None).malloc_trim(0)
