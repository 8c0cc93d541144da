"""The client: sync and async over the same steps, each with a deadline and retries."""

from __future__ import annotations

import asyncio
import random
import time
import urllib.parse
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from serving.client import channels
from serving.client.messages import GrpcMessages, RestMessages, Target
from serving.client.replies import ClientError, Reply, Row
from serving.client.requests import Signature, batches

DEFAULT = "serving_default"
T = TypeVar("T")
# What is asked of the server next → what it answered.
Steps = Generator[Any, Any, T]


class _Asking:
    """What both clients share: the steps of each question, without the waiting.

    Args:
        target: ``grpc://host:8500``, ``grpcs://``, ``http://host:8501`` or ``https://``.
        model: its name.
        version: its number; None for the newest.
        label: what the version is called, instead of its number.
        timeout: seconds that a call may take, all its retries included.
        retries: how often a request is sent again where the server is UNAVAILABLE.
        batch_size: rows of one request at most.
        token: a bearer token, sent as the header ``authorization``.
        headers: others.
        authority: a file with certificates to trust, in place of the system's.

    Raises:
        ValueError: the target is none of these, or there are both a version and a label.
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
        authority: str | Path | None = None,
    ):
        parts = urllib.parse.urlsplit(target)
        if parts.scheme not in ("grpc", "grpcs", "http", "https") or not parts.netloc:
            raise ValueError(
                f"{target!r} is no target; it is like grpc://localhost:8500, grpcs://, "
                "http://localhost:8501 or https://"
            )
        if version is not None and label:
            raise ValueError("A version or a label, not both.")
        if batch_size < 1:
            raise ValueError(f"A request has at least one row, not {batch_size}.")
        given = {name.lower(): value for name, value in (headers or {}).items()}
        if token is not None:
            given["authorization"] = f"Bearer {token}"
        trusted = None if authority is None else Path(authority)
        secure = parts.scheme in ("grpcs", "https")
        self._target = Target(parts.netloc, secure, model, version, label, given, trusted)
        self._is_rest = parts.scheme.startswith("http")
        make = RestMessages if self._is_rest else GrpcMessages
        self._messages: Any = make(self._target)
        self._timeout, self._retries, self._batch_size = timeout, retries, batch_size
        self._signatures: dict[str, Signature] | None = None

    def _metadata(self, again: bool = False) -> Steps[dict[str, Signature]]:
        if self._signatures is None or again:
            self._signatures = self._messages.signatures((yield self._messages.metadata()))
        return self._signatures

    def _signature(self, name: str) -> Steps[Signature]:
        signatures = yield from self._metadata()
        if name not in signatures:
            signatures = yield from self._metadata(again=True)  # a newer version may have it
        if name not in signatures:
            told = ", ".join(sorted(key for key in signatures if not key.startswith("__")))
            raise ClientError("NOT_FOUND", f"there is no signature {name!r} (there are: {told})")
        return signatures[name]

    def _rows(self, rows: Sequence[Any], name: str) -> Steps[list[Row]]:
        signature = yield from self._signature(name)
        found: list[Row] = []
        for inputs in batches(signature, rows, self._batch_size):
            response = yield self._messages.predict(name, signature, inputs)
            found += self._messages.reply(signature, response).rows()
        return found

    def _arrays(self, inputs: Mapping[str, Any], name: str) -> Steps[Reply]:
        signature = yield from self._signature(name)
        given = {key: _array(value) for key, value in inputs.items()}
        return self._messages.reply(
            signature, (yield self._messages.predict(name, signature, given))
        )

    def _scored(self, rows: Sequence[Any], answers: Sequence[Any]) -> Steps[list[Row]]:
        if len(rows) != len(answers):
            told = f"{len(rows)} rows and {len(answers)} answers to them"
            raise ClientError("INVALID_ARGUMENT", told)
        names = [entry["name"] for entry in (yield from self._signature("score")).entries]
        others = [entry["name"] for entry in (yield from self._signature(DEFAULT)).entries]
        given = [name for name in names if name not in others]
        if len(given) != 1:
            raise ClientError("UNIMPLEMENTED", "this model does not score answers")
        pairs = []
        for row, answer in zip(rows, answers, strict=True):
            asked = row if isinstance(row, Mapping) else {others[0]: row}
            pairs.append({**asked, given[0]: answer})
        return (yield from self._rows(pairs, "score"))

    def _states(self) -> Steps[dict[int, str]]:
        return self._messages.states((yield self._messages.status()))

    def _pause(self, error: ClientError, tries: int, deadline: float) -> float:
        """Seconds to wait before the next try.

        Raises:
            ClientError: the given one, where another try would not help or come too late.
        """
        pause = min(0.05 * 2**tries, 2.0) * random.uniform(0.5, 1.0)
        too_late = time.monotonic() + pause >= deadline
        if error.code != "UNAVAILABLE" or tries >= self._retries or too_late:
            raise error
        return pause


class Client(_Asking):
    """Asks a served model; see ``_Asking`` for the arguments.

    Example:
        >>> client = Client("grpc://localhost:8500", model="quickstart")  # doctest: +SKIP
        >>> client.predict(["Friday, 20 November 2026"])  # doctest: +SKIP
        [{'translation': '2026-11-20', 'score': -0.0005}]
    """

    def __init__(self, target: str, model: str, **options: Any):
        super().__init__(target, model, **options)
        make = channels.Rest if self._is_rest else channels.Grpc
        self._channel: Any = make(self._target)

    def predict(self, rows: Sequence[Any], signature: str = DEFAULT) -> list[Row]:
        """The answers to rows, in order.

        Args:
            rows: each a text, the bytes of an image or a list of points, for models with one
                input; else a mapping of the inputs.
            signature: the name of what is asked.

        Returns:
            The outputs of each row by name, without padding.

        Raises:
            ClientError: the server refuses, fails or does not answer in time.
        """
        return self._run(self._rows(rows, signature))

    def predict_arrays(self, inputs: Mapping[str, Any], signature: str = DEFAULT) -> Reply:
        """One request as it goes over the wire, for models of any kind.

        Raises:
            ClientError: as in ``predict``.
        """
        return self._run(self._arrays(inputs, signature))

    def align(self, rows: Sequence[Any]) -> list[Row]:
        """As ``predict``, with where the model looked.

        Raises:
            ClientError: as in ``predict``.
        """
        return self._run(self._rows(rows, "align"))

    def score(self, rows: Sequence[Any], answers: Sequence[Any]) -> list[Row]:
        """How probable the model finds given answers to rows: ``score``, and that of each piece.

        Raises:
            ClientError: as in ``predict``, or the model does not score.
        """
        return self._run(self._scored(rows, answers))

    def metadata(self) -> dict[str, Signature]:
        """The model's signatures, as they are now.

        Raises:
            ClientError: as in ``predict``.
        """
        return self._run(self._metadata(again=True))

    def status(self) -> dict[int, str]:
        """The model's versions and their states: ``AVAILABLE``, ``LOADING``, ...

        Raises:
            ClientError: as in ``predict``.
        """
        return self._run(self._states())

    def close(self) -> None:
        """Ends the connection."""
        self._channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _run(self, steps: Steps[T]) -> T:
        deadline = time.monotonic() + self._timeout
        response = None
        try:
            while True:
                message = steps.send(response)
                response = self._send(message, deadline)
        except StopIteration as end:
            return end.value

    def _send(self, message: Any, deadline: float) -> Any:
        tries = 0
        while True:
            try:
                return self._channel.send(message, channels.left(deadline))
            except ClientError as error:
                time.sleep(self._pause(error, tries, deadline))
                tries += 1


class AsyncClient(_Asking):
    """As ``Client``, for programs with an event loop: every method is a coroutine."""

    def __init__(self, target: str, model: str, **options: Any):
        super().__init__(target, model, **options)
        make = channels.AsyncRest if self._is_rest else channels.AsyncGrpc
        self._channel: Any = make(self._target)

    async def predict(self, rows: Sequence[Any], signature: str = DEFAULT) -> list[Row]:
        """As ``Client.predict``."""
        return await self._run(self._rows(rows, signature))

    async def predict_arrays(self, inputs: Mapping[str, Any], signature: str = DEFAULT) -> Reply:
        """As ``Client.predict_arrays``."""
        return await self._run(self._arrays(inputs, signature))

    async def align(self, rows: Sequence[Any]) -> list[Row]:
        """As ``Client.align``."""
        return await self._run(self._rows(rows, "align"))

    async def score(self, rows: Sequence[Any], answers: Sequence[Any]) -> list[Row]:
        """As ``Client.score``."""
        return await self._run(self._scored(rows, answers))

    async def metadata(self) -> dict[str, Signature]:
        """As ``Client.metadata``."""
        return await self._run(self._metadata(again=True))

    async def status(self) -> dict[int, str]:
        """As ``Client.status``."""
        return await self._run(self._states())

    async def close(self) -> None:
        """Ends the connection."""
        await self._channel.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _run(self, steps: Steps[T]) -> T:
        deadline = time.monotonic() + self._timeout
        response = None
        try:
            while True:
                message = steps.send(response)
                response = await self._send(message, deadline)
        except StopIteration as end:
            return end.value

    async def _send(self, message: Any, deadline: float) -> Any:
        tries = 0
        while True:
            try:
                return await self._channel.send(message, channels.left(deadline))
            except ClientError as error:
                await asyncio.sleep(self._pause(error, tries, deadline))
                tries += 1


def _array(value: Any) -> np.ndarray:
    """A value as a tensor; texts as bytes."""
    found = np.asarray(value)
    if found.dtype.kind not in "USO":
        return found
    # As objects from the start: NumPy's own strings lose the zeros at their end.
    made = np.array(value, dtype=object)
    for place in np.ndindex(made.shape):
        one: Any = made[place]
        made[place] = one.encode() if isinstance(one, str) else one
    return made
