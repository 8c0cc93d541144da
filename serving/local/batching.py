"""Requests that wait are put together into one, and its answer is taken apart again."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from serving.local.model_config import Batching
from serving.local.status import Code, ServingError, invalid

Tensors = Mapping[str, np.ndarray]
Run = Callable[[Tensors], Awaitable[dict[str, np.ndarray]]]


@dataclass
class _Task:
    """A request that waits."""

    inputs: Tensors
    rows: int
    answer: asyncio.Future[dict[str, np.ndarray]]


@dataclass
class _Batch:
    """Requests that will be one."""

    began: float = field(default_factory=time.monotonic)
    tasks: list[_Task] = field(default_factory=list)
    full: bool = False

    @property
    def rows(self) -> int:
        return sum(task.rows for task in self.tasks)


class Batcher:
    """Puts the requests to one signature of one servable together.

    Batches wait in a row; the last one takes what comes until it is full. ``num_batch_threads``
    are worked on side by side, each as soon as it is full or has waited long enough.

    Args:
        settings: the sizes and times.
        run: answers one batch.
        observe: told of each batch: its rows, those that were added to fill it up, and how long
            its first request waited, in seconds.
    """

    def __init__(
        self,
        settings: Batching,
        run: Run,
        observe: Callable[[int, int, float], None] = lambda rows, filled, waited: None,
    ):
        self._settings, self._run, self._observe = settings, run, observe
        self._waiting: deque[_Batch] = deque()
        self._changed = asyncio.Event()
        self._workers: list[asyncio.Task[None]] = []

    async def submit(self, inputs: Tensors) -> dict[str, np.ndarray]:
        """The outputs for some rows, which may be answered together with others.

        Raises:
            ServingError: there are too many rows, or too many requests wait; or the batch failed.
        """
        rows = _rows(inputs)
        settings = self._settings
        if rows > settings.max_batch_size and not settings.enable_large_batch_splitting:
            told = f"Task size {rows} is larger than maximum input batch size"
            raise invalid(told, f" {settings.max_batch_size}")
        size = settings.largest
        starts = range(0, max(rows, 1), size)
        parts: list[Tensors] = [
            {name: tensor[i : i + size] for name, tensor in inputs.items()} for i in starts
        ]
        tasks = self._enqueue(parts)
        if len(tasks) == 1:
            return await tasks[0].answer
        answers = await asyncio.gather(*(task.answer for task in tasks))
        return {name: np.concatenate([one[name] for one in answers]) for name in answers[0]}

    def _enqueue(self, parts: list[Tensors]) -> list[_Task]:
        """Puts all parts of a request into batches, or none."""
        loop = asyncio.get_running_loop()
        tasks = [_Task(part, _rows(part), loop.create_future()) for part in parts]
        open_batches, added = list(self._waiting), 0
        rows = open_batches[-1].rows if open_batches and not open_batches[-1].full else None
        for task in tasks:
            if rows is None or rows + task.rows > self._settings.largest:
                added, rows = added + 1, 0
            rows += task.rows
        if len(self._waiting) + added > self._settings.max_enqueued_batches:
            told = "The batch scheduling queue to which this task was submitted is full"
            raise ServingError(Code.UNAVAILABLE, told)
        for task in tasks:
            last = self._waiting[-1] if self._waiting else None
            if last is None or last.full or last.rows + task.rows > self._settings.largest:
                if last is not None:
                    last.full = True
                last = _Batch()
                self._waiting.append(last)
            last.tasks.append(task)
            last.full = last.rows >= self._settings.largest
        self._changed.set()
        while len(self._workers) < self._settings.num_batch_threads:
            self._workers.append(loop.create_task(self._work()))
        return tasks

    async def close(self) -> None:
        """Answers what waits, and ends."""
        while self._waiting:
            for batch in self._waiting:
                batch.full = True
            self._changed.set()
            await asyncio.sleep(0.001)
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    async def _work(self) -> None:
        while True:
            batch = await self._next()
            # What is worked on is finished, also when the server stops.
            await asyncio.shield(asyncio.ensure_future(self._answer(batch)))

    async def _next(self) -> _Batch:
        """The first batch, once it is full or has waited."""
        while True:
            wait = None
            if self._waiting:
                batch = self._waiting[0]
                until = batch.began + self._settings.batch_timeout_micros / 1e6
                wait = until - time.monotonic()
                if batch.full or wait <= 0:
                    return self._waiting.popleft()
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), wait)
            except asyncio.TimeoutError:
                continue

    async def _answer(self, batch: _Batch) -> None:
        waited = time.monotonic() - batch.began
        tasks = [task for task in batch.tasks if not task.answer.cancelled()]
        if not tasks:
            return
        try:
            merged, filled = self._merged(tasks)
            self._observe(sum(task.rows for task in tasks), filled, waited)
            outputs = await self._run(merged)
            answers = _split(outputs, [task.rows for task in tasks], filled)
        except Exception as error:
            for task in tasks:
                if not task.answer.done():
                    task.answer.set_exception(error)
            return
        for task, answer in zip(tasks, answers, strict=True):
            if not task.answer.done():
                task.answer.set_result(answer)

    def _merged(self, tasks: list[_Task]) -> tuple[dict[str, np.ndarray], int]:
        """The inputs of all, and how many rows were added to fill the batch up."""
        rows = sum(task.rows for task in tasks)
        allowed = [size for size in self._settings.allowed_batch_sizes if size >= rows]
        filled = allowed[0] - rows if allowed else 0
        merged = {}
        for name in tasks[0].inputs:
            tensors = [task.inputs[name] for task in tasks]
            if len({tensor.shape[1:] for tensor in tensors}) > 1:
                tensors = self._padded(name, tensors)
            # The first row again: TensorFlow Serving fills batches up with it, too.
            tensors += [tensors[0][:1]] * filled
            merged[name] = np.concatenate(tensors) if len(tensors) > 1 else tensors[0]
        return merged, filled

    def _padded(self, name: str, tensors: list[np.ndarray]) -> list[np.ndarray]:
        """Tensors of one shape but for the first dimension, by their own first elements."""
        if not self._settings.pad_variable_length_inputs:
            told = f"Tensors with name '{name}' from different tasks have different shapes and"
            told += " padding is turned off. Set pad_variable_length_inputs to true, or ensure that"
            told += " all tensors with the same name have equal dimensions starting with the first"
            raise ServingError(Code.FAILED_PRECONDITION, f"{told} dim.")
        if len({tensor.ndim for tensor in tensors}) > 1:
            told = f"Tensors with name '{name}' from different tasks have different ranks."
            raise invalid(told)
        largest = np.max([tensor.shape[1:] for tensor in tensors], axis=0)
        return [_pad(tensor, largest) for tensor in tensors]


def _pad(tensor: np.ndarray, largest: np.ndarray) -> np.ndarray:
    if not tensor.size:
        told = "Tensors without an element cannot be padded to the shape of others."
        raise invalid(told)
    padded = np.full((len(tensor), *largest), tensor.flat[0], dtype=tensor.dtype)
    padded[tuple(slice(size) for size in tensor.shape)] = tensor
    return padded


def _rows(inputs: Tensors) -> int:
    """The first dimension, which all inputs must have in common.

    Raises:
        ServingError: one has none, or another.
    """
    sizes = {tensor.shape[0] if tensor.ndim else -1 for tensor in inputs.values()}
    if -1 in sizes:
        raise invalid("Batching input tensors must have at least one dimension.")
    if len(sizes) != 1:
        told = "Batching input tensors supplied in a given call must have equal 0th-dimension size"
        raise invalid(told)
    return sizes.pop()


def _split(
    outputs: Mapping[str, np.ndarray], rows: list[int], filled: int
) -> list[dict[str, np.ndarray]]:
    total = sum(rows) + filled
    for tensor in outputs.values():
        if not tensor.ndim:
            told = "Batched output tensor has 0 dimensions"
            raise ServingError(Code.FAILED_PRECONDITION, told)
        if len(tensor) != total:
            told = "Batched output tensor's 0th dimension does not equal the sum of the 0th"
            told += " dimension sizes of the input tensors"
            raise ServingError(Code.FAILED_PRECONDITION, told)
    ends = np.cumsum(rows)
    return [
        {name: tensor[end - size : end] for name, tensor in outputs.items()}
        for size, end in zip(rows, ends, strict=True)
    ]
