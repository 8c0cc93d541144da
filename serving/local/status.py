"""What can go wrong, in the codes of TensorFlow Serving, gRPC and HTTP."""

from __future__ import annotations

import enum
import logging

_LONGEST = 1024  # characters of a message over gRPC
_CUT = "...TRUNCATED"
log = logging.getLogger("regard.serve")


class Code(enum.Enum):
    """A status code: its number in gRPC, and what HTTP calls it."""

    OK = (0, 200)
    CANCELLED = (1, 499)
    UNKNOWN = (2, 500)
    INVALID_ARGUMENT = (3, 400)
    DEADLINE_EXCEEDED = (4, 504)
    NOT_FOUND = (5, 404)
    ALREADY_EXISTS = (6, 409)
    PERMISSION_DENIED = (7, 403)
    RESOURCE_EXHAUSTED = (8, 429)
    FAILED_PRECONDITION = (9, 400)
    ABORTED = (10, 409)
    OUT_OF_RANGE = (11, 400)
    UNIMPLEMENTED = (12, 501)
    INTERNAL = (13, 500)
    UNAVAILABLE = (14, 503)
    DATA_LOSS = (15, 500)
    UNAUTHENTICATED = (16, 401)

    @property
    def number(self) -> int:
        """As gRPC and ``error_codes.proto`` count it."""
        return self.value[0]

    @property
    def http(self) -> int:
        """As the REST API answers it."""
        return self.value[1]


class ServingError(Exception):
    """A request that is not answered, and why.

    Args:
        code: of the status.
        message: of the status, as the client gets it.
    """

    def __init__(self, code: Code, message: str):
        super().__init__(message)
        self.code, self.message = code, message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"

    @property
    def short(self) -> str:
        """The message as gRPC carries it."""
        if len(self.message) <= _LONGEST:
            return self.message
        return self.message[: _LONGEST - len(_CUT)] + _CUT


def failure(error: Exception) -> ServingError:
    """What a client is told of an error; what is our own fault is for the log alone."""
    if isinstance(error, ServingError):
        return error
    log.error("a request failed", exc_info=error)
    return ServingError(Code.INTERNAL, "The server failed; its log says why.")


def invalid(*parts: object) -> ServingError:
    """INVALID_ARGUMENT with a message of these parts."""
    return ServingError(Code.INVALID_ARGUMENT, "".join(map(str, parts)))
