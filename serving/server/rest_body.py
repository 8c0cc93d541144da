"""The bodies of REST requests: limits, and gzip."""

import zlib
from collections.abc import Callable

from grpc import StatusCode
from starlette.requests import ClientDisconnect, Request

from regard.serving.server.admission import SMALL_BYTES, Admission
from regard.serving.server.errors import ServingError, invalid

_GZIP_HEADER = 16  # for zlib, in addition to the size of its window
# JSON packs to a tenth. Otherwise a few bytes would cost as much time as the largest body.
_MAX_RATIO = 100


async def read_body(
    request: Request, admission: Admission, max_bytes: int, hold: Callable[[int], None]
) -> bytes:
    """Return the body of a request, unpacked.

    Args:
        request: the request.
        admission: where large bodies are unpacked.
        max_bytes: limit for the body, packed and unpacked.
        hold: counts the bytes that the request holds.

    Raises:
        ServingError: the body is too large, damaged, or packed in another way than gzip, or its
            client disconnects.
    """
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        message = f"Unsupported Content-Encoding {encoding[:100]!r}. Use gzip, or none."
        raise ServingError(StatusCode.INVALID_ARGUMENT, message, http_status=415)
    body = bytearray()
    if int(request.headers.get("content-length", 0)) > max_bytes:
        raise _too_large(max_bytes)
    try:
        async for chunk in request.stream():
            if len(body) + len(chunk) > max_bytes:
                raise _too_large(max_bytes)
            hold(len(chunk))
            body += chunk
    except ClientDisconnect:
        raise ServingError(StatusCode.CANCELLED, "The client disconnected.") from None
    if encoding not in ("gzip", "x-gzip"):
        return bytes(body)
    limit = min(max_bytes, max(_MAX_RATIO * len(body), SMALL_BYTES))
    unpacked = await admission.convert(limit, _unpack, bytes(body), limit, max_bytes)
    hold(max(len(unpacked) - len(body), 0))
    return unpacked


def _unpack(body: bytes, limit: int, max_bytes: int) -> bytes:
    """Unpack one gzip stream of at most ``limit`` bytes, which is at most ``max_bytes``."""
    stream = zlib.decompressobj(_GZIP_HEADER + zlib.MAX_WBITS)
    try:
        content = stream.decompress(body, limit + 1)
    except zlib.error as error:
        raise invalid(f"The body is not valid gzip: {error}") from None
    if len(content) > limit:
        if limit < max_bytes:
            message = (
                f"The body has more than {_MAX_RATIO} times its packed size; send it unpacked."
            )
            raise ServingError(StatusCode.RESOURCE_EXHAUSTED, message, http_status=413)
        raise _too_large(limit, "unpacked ")
    if not stream.eof or stream.unused_data:
        raise invalid("The body is not one complete gzip stream.")
    return content


def _too_large(limit: int, kind: str = "") -> ServingError:
    message = f"The {kind}body has more than {limit} bytes."
    return ServingError(StatusCode.RESOURCE_EXHAUSTED, message, http_status=413)
