"""Batches: who is put together with whom, what is refused, and that each gets its own answer."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from serving.local.batching import Batcher
from serving.local.model_config import Batching
from serving.local.status import Code, ServingError


class Doubler:
    """Doubles numbers, keeps the shapes of the batches, and answers when it is told to."""

    def __init__(self, held: bool = False):
        self.shapes: list[tuple[int, ...]] = []
        self.seen: list[np.ndarray] = []
        self.free = asyncio.Event()
        if not held:
            self.free.set()

    async def __call__(self, inputs):
        self.shapes.append(inputs["x"].shape)
        self.seen.append(inputs["x"])
        await self.free.wait()
        if (inputs["x"] < 0).any():
            raise ServingError(Code.INVALID_ARGUMENT, "negative")
        return {"y": 2 * inputs["x"]}


def asked(*values):
    return {"x": np.array(values, "float32")}


async def all_of(batcher, requests):
    found = await asyncio.gather(*(batcher.submit(one) for one in requests), return_exceptions=True)
    await batcher.close()
    return found


def run(settings, requests, held=False):
    """The answers to requests that come at once, and the batches that there were."""

    async def main():
        model = Doubler(held)
        batcher = Batcher(Batching(**settings), model)
        asyncio.get_running_loop().call_later(0.05, model.free.set)
        return await all_of(batcher, requests), model

    return asyncio.run(main())


def test_what_waits_is_answered_together_and_each_gets_its_own():
    settings = {"max_batch_size": 8, "batch_timeout_micros": 20_000, "num_batch_threads": 1}
    answers, model = run(settings, [asked(1), asked(2, 3), asked(4)])
    assert [one["y"].tolist() for one in answers] == [[2], [4, 6], [8]]
    assert model.shapes == [(4,)]


def test_a_full_batch_does_not_wait():
    settings = {"max_batch_size": 2, "batch_timeout_micros": 60_000_000, "num_batch_threads": 2}

    async def main():
        batcher = Batcher(Batching(**settings), model := Doubler())
        answers = await asyncio.wait_for(
            asyncio.gather(*(batcher.submit(asked(i)) for i in range(4))), 5
        )
        await batcher.close()
        return answers, model

    answers, model = asyncio.run(main())
    assert [float(one["y"][0]) for one in answers] == [0, 2, 4, 6]
    assert model.shapes == [(2,), (2,)]


def test_a_request_that_does_not_fit_begins_the_next_batch():
    settings = {"max_batch_size": 3, "batch_timeout_micros": 10_000, "num_batch_threads": 1}
    answers, model = run(settings, [asked(1, 2), asked(3, 4), asked(5)])
    assert model.shapes == [(2,), (3,)]
    assert [one["y"].tolist() for one in answers] == [[2, 4], [6, 8], [10]]


def test_more_rows_than_a_batch_may_have_are_refused_or_taken_apart():
    (answer,), _ = run({"max_batch_size": 2}, [asked(1, 2, 3)])
    assert answer.message == "Task size 3 is larger than maximum input batch size 2"
    settings = {"max_batch_size": 9, "enable_large_batch_splitting": True}
    settings["max_execution_batch_size"] = 2
    (answer,), model = run(settings, [asked(1, 2, 3, 4, 5)])
    assert answer["y"].tolist() == [2, 4, 6, 8, 10]
    assert sorted(model.shapes) == [(1,), (2,), (2,)]


def test_a_full_queue_refuses_at_once_and_recovers():
    async def main():
        model = Doubler(held=True)
        settings = Batching(max_batch_size=1, max_enqueued_batches=2, num_batch_threads=1)
        batcher = Batcher(settings, model)
        first = asyncio.ensure_future(batcher.submit(asked(0)))
        await asyncio.sleep(0.01)  # it is being worked on
        waiting = [asyncio.ensure_future(batcher.submit(asked(i))) for i in (1, 2)]
        await asyncio.sleep(0)
        with pytest.raises(ServingError) as caught:
            await batcher.submit(asked(3))
        model.free.set()
        answers = [await one for one in (first, *waiting)]
        after = await batcher.submit(asked(4))
        await batcher.close()
        return caught.value, answers, after

    error, answers, after = asyncio.run(main())
    assert error.code is Code.UNAVAILABLE
    assert error.message.endswith("queue to which this task was submitted is full")
    assert [float(one["y"][0]) for one in answers] == [0, 2, 4]
    assert float(after["y"][0]) == 8


def test_batches_are_filled_up_to_an_allowed_size():
    settings = {"max_batch_size": 4, "allowed_batch_sizes": (2, 4), "num_batch_threads": 1}
    settings["batch_timeout_micros"] = 10_000
    answers, model = run(settings, [asked(7), asked(8), asked(9)])
    assert model.shapes == [(4,)]
    assert model.seen[0].tolist() == [7, 8, 9, 7]
    assert [one["y"].tolist() for one in answers] == [[14], [16], [18]]


def test_different_shapes():
    settings = {"max_batch_size": 4, "batch_timeout_micros": 10_000, "num_batch_threads": 1}
    wide, narrow = {"x": np.ones((1, 3))}, {"x": np.full((1, 2), 5.0)}
    answers, _ = run(settings, [wide, narrow])
    assert {one.code for one in answers} == {Code.FAILED_PRECONDITION}
    assert answers[0].message.startswith("Tensors with name 'x' from different tasks have")
    answers, model = run({**settings, "pad_variable_length_inputs": True}, [wide, narrow])
    assert model.seen[0].tolist() == [[1, 1, 1], [5, 5, 5]]  # by its own first element
    assert answers[1]["y"].tolist() == [[10, 10, 10]]


def test_a_batch_that_fails_tells_all_and_the_next_one_is_answered():
    settings = {"max_batch_size": 2, "batch_timeout_micros": 10_000, "num_batch_threads": 1}
    answers, _ = run(settings, [asked(1), asked(-1), asked(3)])
    assert [getattr(one, "message", None) for one in answers] == ["negative", "negative", None]
    assert answers[2]["y"].tolist() == [6]


def test_a_request_that_was_given_up_is_not_worked_on():
    async def main():
        model = Doubler(held=True)
        batcher = Batcher(Batching(max_batch_size=1, num_batch_threads=1), model)
        first = asyncio.ensure_future(batcher.submit(asked(1)))
        await asyncio.sleep(0.01)
        second = asyncio.ensure_future(batcher.submit(asked(2)))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.sleep(0)
        model.free.set()
        answer = await first
        await batcher.close()
        return answer, model

    answer, model = asyncio.run(main())
    assert answer["y"].tolist() == [2]
    assert len(model.shapes) == 1


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (np.float32(1).reshape(()), "Batched output tensor has 0 dimensions"),
        (np.zeros(5), "does not equal the sum of the 0th dimension sizes"),
    ],
)
def test_outputs_without_the_batch(output, message):
    async def main():
        async def model(inputs):
            return {"y": output}

        return await all_of(Batcher(Batching(), model), [asked(1)])

    (answer,) = asyncio.run(main())
    assert message in answer.message


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"x": np.float32(1).reshape(())}, "must have at least one dimension"),
        ({"x": np.zeros(1), "z": np.zeros(2)}, "must have equal 0th-dimension size"),
    ],
)
def test_inputs_without_a_batch(inputs, message):
    (answer,), _ = run({}, [inputs])
    assert message in answer.message
