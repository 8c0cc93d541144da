"""The synchronous and the asynchronous client: the same steps, with a deadline and retries."""

from __future__ import annotations

import asyncio
import random
import time
import urllib.parse
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from regard.serving.client.conversion import (
    ClientError,
    Reply,
    Row,
    Signature,
    split_requests,
    to_array,
)
from regard.serving.client.messages import GrpcMessages, Messages, Request, RestMessages, Target
from regard.serving.client.transport import (
    AsyncGrpcTransport,
    AsyncHttpTransport,
    GrpcTransport,
    HttpTransport,
    seconds_until,
)

DEFAULT_SIGNATURE = "serving_default"
T = TypeVar("T")
Steps = Generator[Request, bytes, T]  # yields requests, receives the bodies of responses


class _ClientSteps:
    """The steps of each call, without input and output.

    Args:
        target: ``grpc://host:8500``, ``grpcs://``, ``http://host:8501`` or ``https://``.
        model: the model's name.
        version: its number; None for the newest.
        label: the version's label, instead of its number.
        timeout: limit for a call with all its retries, in seconds.
        retries: how often a request is repeated while the server is UNAVAILABLE.
        batch_size: maximum rows of one request.
        token: a bearer token for the header ``authorization``.
        headers: further headers.
        ca_file: a file with trusted certificates, instead of the system's.

    Raises:
        ValueError: an argument is invalid.
    """

    def __init__(
        self,
        target: str,
        model: str,
        *,
        version: int | None = None,
        label: str = "",
        timeout: float = 60.0,
        retries: int = 5,
        batch_size: int = 64,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        ca_file: str | Path | None = None,
    ):
        url = urllib.parse.urlsplit(target)
        if url.scheme not in ("grpc", "grpcs", "http", "https") or not url.netloc:
            raise ValueError(
                f"Invalid target {target!r}. Use grpc://localhost:8500, grpcs://, "
                "http://localhost:8501 or https://."
            )
        if version is not None and label:
            raise ValueError("Give a version or a label, not both.")
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}. Use at least 1.")
        all_headers = {name.lower(): value for name, value in (headers or {}).items()}
        if token is not None:
            all_headers["authorization"] = f"Bearer {token}"
        is_secure = url.scheme in ("grpcs", "https")
        certificates = None if ca_file is None else Path(ca_file)
        self._target = Target(
            url.netloc, is_secure, model, version, label, all_headers, certificates
        )
        self._is_rest = url.scheme.startswith("http")
        messages = RestMessages if self._is_rest else GrpcMessages
        self._messages: Messages = messages(self._target)
        self._timeout, self._retries, self._batch_size = timeout, retries, batch_size
        self._signatures: dict[str, Signature] | None = None

    def _metadata(self, refresh: bool = False) -> Steps[dict[str, Signature]]:
        if self._signatures is None or refresh:
            self._signatures = self._messages.parse_signatures((yield self._messages.metadata()))
        return self._signatures

    def _signature(self, name: str) -> Steps[Signature]:
        signatures = yield from self._metadata()
        if name not in signatures:
            signatures = yield from self._metadata(refresh=True)  # a newer version may have it
        if name not in signatures:
            names = ", ".join(sorted(key for key in signatures if not key.startswith("__")))
            message = f"There is no signature {name!r}. The signatures are: {names}."
            raise ClientError("NOT_FOUND", message)
        return signatures[name]

    def _predict(self, rows: Sequence[Any], name: str) -> Steps[list[Row]]:
        signature = yield from self._signature(name)
        results: list[Row] = []
        for inputs in split_requests(signature, rows, self._batch_size):
            body = yield self._messages.predict(name, inputs)
            results += self._messages.parse_reply(signature, body).rows()
        return results

    def _predict_arrays(self, inputs: Mapping[str, Any], name: str) -> Steps[Reply]:
        signature = yield from self._signature(name)
        arrays = {key: to_array(value) for key, value in inputs.items()}
        body = yield self._messages.predict(name, arrays)
        return self._messages.parse_reply(signature, body)

    def _score(self, rows: Sequence[Any], outputs: Sequence[Any]) -> Steps[list[Row]]:
        if len(rows) != len(outputs):
            message = f"There are {len(rows)} rows and {len(outputs)} outputs."
            raise ClientError("INVALID_ARGUMENT", message)
        names = [entry["name"] for entry in (yield from self._signature("score")).entries]
        signature = yield from self._signature(DEFAULT_SIGNATURE)
        model_inputs = [entry["name"] for entry in signature.entries]
        output_names = [name for name in names if name not in model_inputs]
        if len(output_names) != 1:
            raise ClientError("UNIMPLEMENTED", "The model cannot score a given output.")
        scored = []
        for row, output in zip(rows, outputs, strict=True):
            inputs = row if isinstance(row, Mapping) else {model_inputs[0]: row}
            scored.append({**inputs, output_names[0]: output})
        return (yield from self._predict(scored, "score"))

    def _status(self) -> Steps[dict[int, str]]:
        return self._messages.parse_states((yield self._messages.status()))

    def _retry_delay(self, error: ClientError, tries: int, deadline: float) -> float:
        """Return the seconds before the next try.

        Raises:
            ClientError: the given error, if another try is useless or too late.
        """
        delay = min(0.05 * 2**tries, 2.0) * random.uniform(0.5, 1.0)
        is_late = time.monotonic() + delay >= deadline
        if error.code != "UNAVAILABLE" or tries >= self._retries or is_late:
            raise error
        return delay


class Client(_ClientSteps):
    """Runs a served model. ``_ClientSteps`` describes the arguments.

    Example:
        >>> client = Client("grpc://localhost:8500", model="quickstart")  # doctest: +SKIP
        >>> client.predict(["Friday, 20 November 2026"])  # doctest: +SKIP
        [{'translation': '2026-11-20', 'score': -0.0005}]
    """

    def __init__(self, target: str, model: str, **options: Any):
        super().__init__(target, model, **options)
        transport = HttpTransport if self._is_rest else GrpcTransport
        self._transport: HttpTransport | GrpcTransport = transport(self._target)

    def predict(self, rows: Sequence[Any], signature: str = DEFAULT_SIGNATURE) -> list[Row]:
        """Return the outputs for rows, in order.

        Args:
            rows: a text, the bytes of an image or a list of points for each row; or a mapping of
                the inputs by name.
            signature: the signature's name.

        Returns:
            The outputs of each row by name, without padding.

        Raises:
            ClientError: the request fails or times out.
        """
        return self._run(self._predict(rows, signature))

    def predict_arrays(
        self, inputs: Mapping[str, Any], signature: str = DEFAULT_SIGNATURE
    ) -> Reply:
        """Send one request of arrays by input name, for models of any kind.

        Raises:
            ClientError: see ``predict``.
        """
        return self._run(self._predict_arrays(inputs, signature))

    def align(self, rows: Sequence[Any]) -> list[Row]:
        """Return the outputs of ``predict`` with tokens and attention weights.

        Raises:
            ClientError: see ``predict``.
        """
        return self._run(self._predict(rows, "align"))

    def score(self, rows: Sequence[Any], outputs: Sequence[Any]) -> list[Row]:
        """Return the log-probability of given outputs for rows: ``score``, and for each token.

        Raises:
            ClientError: see ``predict``, or the model cannot score outputs.
        """
        return self._run(self._score(rows, outputs))

    def metadata(self) -> dict[str, Signature]:
        """Return the model's current signatures.

        Raises:
            ClientError: see ``predict``.
        """
        return self._run(self._metadata(refresh=True))

    def status(self) -> dict[int, str]:
        """Return the states of the model's versions: ``AVAILABLE``, ``LOADING``, ...

        Raises:
            ClientError: see ``predict``.
        """
        return self._run(self._status())

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _run(self, steps: Steps[T]) -> T:
        deadline = time.monotonic() + self._timeout
        try:
            request = next(steps)
            while True:
                request = steps.send(self._send(request, deadline))
        except StopIteration as end:
            return end.value

    def _send(self, request: Request, deadline: float) -> bytes:
        tries = 0
        while True:
            try:
                return self._transport.send(request, seconds_until(deadline))
            except ClientError as error:
                time.sleep(self._retry_delay(error, tries, deadline))
                tries += 1


class AsyncClient(_ClientSteps):
    """A ``Client`` whose methods are coroutines."""

    def __init__(self, target: str, model: str, **options: Any):
        super().__init__(target, model, **options)
        transport = AsyncHttpTransport if self._is_rest else AsyncGrpcTransport
        self._transport: AsyncHttpTransport | AsyncGrpcTransport = transport(self._target)

    async def predict(self, rows: Sequence[Any], signature: str = DEFAULT_SIGNATURE) -> list[Row]:
        """See ``Client.predict``."""
        return await self._run(self._predict(rows, signature))

    async def predict_arrays(
        self, inputs: Mapping[str, Any], signature: str = DEFAULT_SIGNATURE
    ) -> Reply:
        """See ``Client.predict_arrays``."""
        return await self._run(self._predict_arrays(inputs, signature))

    async def align(self, rows: Sequence[Any]) -> list[Row]:
        """See ``Client.align``."""
        return await self._run(self._predict(rows, "align"))

    async def score(self, rows: Sequence[Any], outputs: Sequence[Any]) -> list[Row]:
        """See ``Client.score``."""
        return await self._run(self._score(rows, outputs))

    async def metadata(self) -> dict[str, Signature]:
        """See ``Client.metadata``."""
        return await self._run(self._metadata(refresh=True))

    async def status(self) -> dict[int, str]:
        """See ``Client.status``."""
        return await self._run(self._status())

    async def close(self) -> None:
        """Close the connection."""
        await self._transport.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _run(self, steps: Steps[T]) -> T:
        deadline = time.monotonic() + self._timeout
        try:
            request = next(steps)
            while True:
                request = steps.send(await self._send(request, deadline))
        except StopIteration as end:
            return end.value

    async def _send(self, request: Request, deadline: float) -> bytes:
        tries = 0
        while True:
            try:
                return await self._transport.send(request, seconds_until(deadline))
            except ClientError as error:
                await asyncio.sleep(self._retry_delay(error, tries, deadline))
                tries += 1
