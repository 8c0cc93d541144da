"""The synchronous client, with a deadline and retries, and the asynchronous one on top of it."""

from __future__ import annotations

import asyncio
import functools
import random
import time
import urllib.parse
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from regard.serving.client.connections import (
    GrpcConnection,
    RestConnection,
    Target,
    check_token_url,
)
from regard.serving.client.conversion import (
    ClientError,
    ClientSignature,
    Row,
    as_list,
    split_requests,
    split_rows,
)
from regard.serving.contract import DEFAULT_SIGNATURE

P = ParamSpec("P")
T = TypeVar("T")
_MAX_THREADS = 32


class Client:
    """Runs a served model.

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
        certificate: the files with the client's certificate and its key, where the server asks for
            one.

    Raises:
        ValueError: an argument is invalid, or a token would be sent to another host in clear text.

    Example:
        >>> client = Client("grpc://localhost:8500", model="quickstart")  # doctest: +SKIP
        >>> client.predict(["Friday, 20 November 2026"])  # doctest: +SKIP
        [{'translation': '2026-11-20', 'score': -0.0005}]
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
        certificate: tuple[str | Path, str | Path] | None = None,
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
        if "authorization" in all_headers:
            check_token_url(target)
        self._target = Target(
            url.netloc,
            url.scheme in ("grpcs", "https"),
            model,
            version,
            label,
            all_headers,
            None if ca_file is None else Path(ca_file),
            None if certificate is None else (Path(certificate[0]), Path(certificate[1])),
        )
        connection = RestConnection if url.scheme.startswith("http") else GrpcConnection
        self._connection: RestConnection | GrpcConnection = connection(self._target)
        self._timeout, self._retries, self._batch_size = timeout, retries, batch_size
        self._signatures: dict[str, ClientSignature] = {}

    def predict(self, rows: Iterable[Any], signature: str = DEFAULT_SIGNATURE) -> list[Row]:
        """Return the outputs for rows, in order.

        Args:
            rows: a list, array or iterator with a text, the bytes of an image or a list of points
                for each row; or with a mapping of the inputs by name.
            signature: the signature's name.

        Returns:
            The outputs of each row by name, without padding.

        Raises:
            ClientError: the request fails or times out.
            TypeError: ``rows`` is a single row, a table, or has no order.
        """
        return self._predict(as_list(rows, "rows"), signature, self._deadline())

    def align(self, rows: Iterable[Any]) -> list[Row]:
        """Return the outputs of ``predict`` with tokens and attention weights.

        Raises:
            ClientError, TypeError: see ``predict``.
        """
        return self.predict(rows, "align")

    def score(self, rows: Iterable[Any], outputs: Iterable[Any]) -> list[Row]:
        """Return the log-probability of given outputs for rows: ``score``, and for each token.

        Raises:
            ClientError: see ``predict``, or the model cannot score outputs.
            TypeError: ``rows`` or ``outputs`` is a single value, a table, or has no order.
        """
        rows, outputs = as_list(rows, "rows"), as_list(outputs, "outputs")
        if len(rows) != len(outputs):
            message = f"There are {len(rows)} rows and {len(outputs)} outputs."
            raise ClientError("INVALID_ARGUMENT", message)
        deadline = self._deadline()
        names = [entry["name"] for entry in self._signature("score", deadline).entries]
        model_inputs = self._input_names(deadline)
        output_names = [name for name in names if name not in model_inputs]
        if len(output_names) != 1:
            raise ClientError("UNIMPLEMENTED", "The model cannot score a given output.")
        scored = [
            {**_inputs_by_name(row, model_inputs), output_names[0]: output}
            for row, output in zip(rows, outputs, strict=True)
        ]
        return self._predict(scored, "score", deadline)

    def constrain(
        self, rows: Iterable[Any], prefix: str = "", phrases: Iterable[str] = ()
    ) -> list[Row]:
        """Return the outputs of ``predict`` with constraints on the texts.

        Args:
            rows: as for ``predict``.
            prefix: what every output begins with.
            phrases: what every output contains.

        Raises:
            ClientError: see ``predict``, or the model does not support constraints.
            TypeError: ``rows`` or ``phrases`` is a single value, a table, or has no order.
        """
        rows, phrases = as_list(rows, "rows"), as_list(phrases, "phrases")
        deadline = self._deadline()
        names = self._input_names(deadline)
        constraints = {"prefix": prefix, "phrases": "\n".join(phrases)}
        constrained = [{**_inputs_by_name(row, names), **constraints} for row in rows]
        return self._predict(constrained, "constrained", deadline)

    def metadata(self) -> dict[str, ClientSignature]:
        """Return the model's current signatures.

        Raises:
            ClientError: see ``predict``.
        """
        self._signatures = self._send(self._connection.signatures, self._deadline())
        return self._signatures

    def status(self) -> dict[int, str]:
        """Return the states of the model's versions: ``AVAILABLE``, ``LOADING``, ...

        Raises:
            ClientError: see ``predict``.
        """
        return self._send(self._connection.states, self._deadline())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _deadline(self) -> float:
        return time.monotonic() + self._timeout

    def _predict(self, rows: Sequence[Any], name: str, deadline: float) -> list[Row]:
        signature = self._signature(name, deadline)
        results: list[Row] = []
        for inputs in split_requests(signature, rows, self._batch_size):
            outputs = self._send(self._connection.predict, deadline, name, signature, inputs)
            results += split_rows(outputs)
        return results

    def _input_names(self, deadline: float) -> list[str]:
        return [entry["name"] for entry in self._signature(DEFAULT_SIGNATURE, deadline).entries]

    def _signature(self, name: str, deadline: float) -> ClientSignature:
        if name not in self._signatures:  # a newer version may have it
            self._signatures = self._send(self._connection.signatures, deadline)
        if name not in self._signatures:
            names = ", ".join(sorted(key for key in self._signatures if not key.startswith("__")))
            message = f"There is no signature {name!r}. The signatures are: {names}."
            raise ClientError("NOT_FOUND", message)
        return self._signatures[name]

    def _send(self, method: Callable[..., T], deadline: float, *arguments: Any) -> T:
        """Call a method of the connection, again while the server is UNAVAILABLE."""
        tries = 0
        while True:
            if (seconds := deadline - time.monotonic()) <= 0:
                raise ClientError("DEADLINE_EXCEEDED", "The call timed out.")
            try:
                return method(*arguments, timeout=seconds)
            except ClientError as error:
                delay = min(0.05 * 2**tries, 2.0) * random.uniform(0.5, 1.0)
                is_late = time.monotonic() + delay >= deadline
                if error.code != "UNAVAILABLE" or tries >= self._retries or is_late:
                    raise
            time.sleep(delay)
            tries += 1


def _inputs_by_name(row: Any, names: Sequence[str]) -> Mapping[str, Any]:
    return row if isinstance(row, Mapping) else {names[0]: row}


def _in_thread(
    method: Callable[Concatenate[Client, P], T],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """Return a method of ``Client`` as a coroutine, which runs it in a thread."""

    @functools.wraps(method)
    async def call(self: AsyncClient, *arguments: P.args, **options: P.kwargs) -> T:
        return await self._run(method, self._client, *arguments, **options)

    return call


class AsyncClient:
    """A ``Client`` whose methods are coroutines; each call runs in a thread."""

    def __init__(self, target: str, model: str, **options: Any):
        self._client = Client(target, model, **options)
        self._threads = ThreadPoolExecutor(_MAX_THREADS, "client")

    predict, align = _in_thread(Client.predict), _in_thread(Client.align)
    score, constrain = _in_thread(Client.score), _in_thread(Client.constrain)
    metadata, status = _in_thread(Client.metadata), _in_thread(Client.status)

    async def close(self) -> None:
        """Close the connection after the last call."""
        await self._run(self._client.close)
        self._threads.shutdown(wait=False)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _run(self, method: Callable[..., T], *arguments: Any, **options: Any) -> T:
        call = functools.partial(method, *arguments, **options)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)
