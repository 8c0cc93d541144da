"""Dynamic batching: concurrent requests run as one batch."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from grpc import StatusCode

from regard.serving.server.errors import ServingError
from regard.serving.server.options import BatchingOptions

Tensors = Mapping[str, np.ndarray]
RunBatch = Callable[[Tensors], Awaitable[Tensors]]


@dataclass(frozen=True)
class _Request:
    inputs: Tensors
    rows: int
    outputs: asyncio.Future[Tensors]


@dataclass
class _Batch:
    """Requests of one row shape that will run together."""

    row_shapes: Mapping[str, tuple[int, ...]]
    opened_at: float = field(default_factory=time.monotonic)
    requests: list[_Request] = field(default_factory=list)
    is_full: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def rows(self) -> int:
        return sum(request.rows for request in self.requests)


class Batcher:
    """Batches the requests to one signature of one servable.

    Requests whose rows have different shapes never share a batch, so nothing is padded. A request
    without a batch dimension runs alone.

    Args:
        options: sizes and times.
        run: runs one batch.
        slots: limits how many batches run at once; a waiting batch still accepts requests.
        observe: receives the rows of each batch and when it was opened.
    """

    def __init__(
        self,
        options: BatchingOptions,
        run: RunBatch,
        slots: contextlib.AbstractAsyncContextManager[Any],
        observe: Callable[[int, float], None] = lambda rows, opened_at: None,
    ):
        self._options, self._run, self._slots, self._observe = options, run, slots, observe
        self._open: _Batch | None = None
        self._queued = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, inputs: Tensors) -> Tensors:
        """Return the outputs for the rows of one request.

        Raises:
            ServingError: the queue is full, or the model fails for this request alone.
        """
        rows = count_rows(inputs)
        request = _Request(inputs, rows, asyncio.get_running_loop().create_future())
        self._enqueue(request)
        return await request.outputs

    async def close(self) -> None:
        """Run the waiting batches, and wait until all have finished."""
        if self._open is not None:
            self._open.is_full.set()
        await asyncio.gather(*self._tasks)

    def _enqueue(self, request: _Request) -> None:
        shapes = {name: tensor.shape[1:] for name, tensor in request.inputs.items()}
        batch = self._open
        if batch is not None and (
            batch.rows + request.rows > self._options.max_batch_size
            or batch.row_shapes != shapes
            or not request.rows
        ):
            batch.is_full.set()
            batch = None
        if batch is None:
            if self._queued >= self._options.max_queued_batches:
                message = "The batching queue is full. Try again later."
                raise ServingError(StatusCode.UNAVAILABLE, message)
            batch = self._open = _Batch(shapes)
            self._queued += 1
            task = asyncio.get_running_loop().create_task(self._process(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        batch.requests.append(request)
        if batch.rows >= self._options.max_batch_size or not request.rows:
            batch.is_full.set()
            self._open = None

    async def _process(self, batch: _Batch) -> None:
        """Wait until the batch is full or its time is over, then run it.

        A request that finds no other one does not wait: later ones share the next batch.
        """
        if len(self._tasks) > 1:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(batch.is_full.wait(), self._options.timeout_seconds)
        async with self._slots:
            self._queued -= 1
            if self._open is batch:
                self._open = None
            requests = [request for request in batch.requests if not request.outputs.cancelled()]
            if not requests:
                return
            self._observe(sum(request.rows for request in requests), batch.opened_at)
            await self._run_requests(requests)

    async def _run_requests(self, requests: list[_Request]) -> None:
        """Run requests together; after an error run each half, so that only the cause of it fails.

        The error of a batch is not sent: its text could tell one client about another's inputs. A
        time-out, whose text is always the same, fails the batch: its halves would take as long.
        """
        try:
            results = _split(await self._run(_merge(requests)), requests)
        except Exception as error:
            is_timeout = getattr(error, "code", None) is StatusCode.DEADLINE_EXCEEDED
            if len(requests) > 1 and not is_timeout:
                middle = len(requests) // 2
                await self._run_requests(requests[:middle])
                await self._run_requests(requests[middle:])
                return
            for request in requests:
                if not request.outputs.done():
                    request.outputs.set_exception(error)
            return
        for request, outputs in zip(requests, results, strict=True):
            if not request.outputs.done():
                request.outputs.set_result(outputs)


def count_rows(inputs: Tensors) -> int:
    """Return the first dimension that all inputs share; 0 if they share none."""
    sizes = {tensor.shape[0] if tensor.ndim else 0 for tensor in inputs.values()}
    return sizes.pop() if len(sizes) == 1 else 0


def _merge(requests: list[_Request]) -> Tensors:
    if len(requests) == 1:
        return requests[0].inputs
    return {
        name: np.concatenate([request.inputs[name] for request in requests])
        for name in requests[0].inputs
    }


def _split(outputs: Tensors, requests: list[_Request]) -> list[Tensors]:
    """Split the outputs of a batch by request.

    Raises:
        ServingError: the first dimension of an output is not the batch.
    """
    if len(requests) == 1:
        return [outputs]
    total = sum(request.rows for request in requests)
    for name, tensor in outputs.items():
        if not tensor.ndim or len(tensor) != total:
            message = f"Output {name} has the shape {list(tensor.shape)} for a batch of {total}."
            raise ServingError(StatusCode.FAILED_PRECONDITION, message)
    ends = np.cumsum([request.rows for request in requests])
    return [
        {name: tensor[end - request.rows : end] for name, tensor in outputs.items()}
        for request, end in zip(requests, ends, strict=True)
    ]
