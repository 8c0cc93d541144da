"""Errors of the server, with the status codes of gRPC and HTTP."""

import logging

from grpc import StatusCode

from regard.serving.protobuf import HTTP_STATUSES

_MAX_GRPC_CHARACTERS = 1024
_TEMPORARY = (StatusCode.UNAVAILABLE, StatusCode.RESOURCE_EXHAUSTED)
_RETRY_SECONDS = 1
log = logging.getLogger("regard.serve")


class ServingError(Exception):
    """A request or a model that the server rejects.

    Args:
        code: the status code.
        message: the text that the client receives.
        http_status: the REST API's status, if it is not the usual one of the code.
    """

    def __init__(self, code: StatusCode, message: str, http_status: int | None = None):
        super().__init__(message)
        self.code, self.message, self._http_status = code, message, http_status

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"

    @property
    def http_status(self) -> int:
        """The status of the REST API."""
        return self._http_status or HTTP_STATUSES.get(self.code.name, 500)

    @property
    def retry_seconds(self) -> int:
        """When the client may try again, for an error that may be over by then; otherwise 0."""
        is_temporary = self.code in _TEMPORARY and self.http_status in (429, 503)
        return _RETRY_SECONDS if is_temporary else 0

    @property
    def grpc_message(self) -> str:
        """The message, shortened to what a gRPC header carries."""
        return self.message[:_MAX_GRPC_CHARACTERS]


def as_serving_error(error: Exception) -> ServingError:
    """Convert an exception to what the client receives; log one that nobody expected."""
    if isinstance(error, ServingError):
        return error
    log.error("A request failed.", exc_info=error)
    return ServingError(StatusCode.INTERNAL, "Internal server error. See the server's log.")


def invalid(message: str) -> ServingError:
    """Create an INVALID_ARGUMENT error."""
    return ServingError(StatusCode.INVALID_ARGUMENT, message)
