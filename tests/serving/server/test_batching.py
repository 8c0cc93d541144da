"""Batches: what runs together, what waits, what is rejected."""

import asyncio

import numpy as np
import pytest
from grpc import StatusCode

from regard.serving.server.batching import Batcher
from regard.serving.server.errors import ServingError
from regard.serving.server.options import BatchingOptions

pytestmark = pytest.mark.anyio


class Doubler:
    """Doubles numbers, records the shapes of the batches, and can be blocked."""

    def __init__(self, is_blocked: bool = False):
        self.shapes: list[tuple[int, ...]] = []
        self.unblock = asyncio.Event()
        if not is_blocked:
            self.unblock.set()

    async def __call__(self, inputs):
        self.shapes.append(inputs["x"].shape)
        await self.unblock.wait()
        if (inputs["x"] < 0).any():
            raise ServingError(StatusCode.INVALID_ARGUMENT, "negative")
        return {"y": 2 * inputs["x"]}


def inputs(*values):
    return {"x": np.array(values, "float32")}


@pytest.fixture
async def batcher():
    """Create batchers, and close them at the end of the test."""
    created = []

    def create(model, **options):
        created.append(Batcher(BatchingOptions(**options), model, asyncio.Semaphore(1)))
        return created[-1]

    yield create
    for batcher in created:
        await batcher.close()


@pytest.fixture
def submit_all(batcher):
    """Return the outputs of simultaneous requests, and the shapes of the batches."""

    async def submit_all(requests, **options):
        model = Doubler()
        batches = batcher(model, **{"timeout_seconds": 0.02, **options})
        results = await asyncio.gather(*map(batches.submit, requests), return_exceptions=True)
        return results, model.shapes

    return submit_all


async def test_simultaneous_requests_share_a_batch(submit_all):
    results, shapes = await submit_all([inputs(1), inputs(2, 3), inputs(4)], max_batch_size=8)
    assert [result["y"].tolist() for result in results] == [[2], [4, 6], [8]]
    assert shapes == [(4,)]


async def test_a_full_batch_does_not_wait(submit_all):
    requests = submit_all(map(inputs, range(4)), max_batch_size=2, timeout_seconds=60)
    results, shapes = await asyncio.wait_for(requests, 5)
    assert [float(result["y"][0]) for result in results] == [0, 2, 4, 6]
    assert shapes == [(2,), (2,)]


async def test_only_a_request_that_finds_others_waits(batcher):
    batches = batcher(Doubler(), timeout_seconds=60)
    async with asyncio.timeout(30):
        assert (await batches.submit(inputs(1)))["y"].tolist() == [2]


async def test_a_request_that_does_not_fit_opens_the_next_batch(submit_all):
    results, shapes = await submit_all([inputs(1, 2), inputs(3, 4), inputs(5)], max_batch_size=3)
    assert shapes == [(2,), (3,)]
    assert [result["y"].tolist() for result in results] == [[2, 4], [6, 8], [10]]


async def test_rows_of_different_shapes_do_not_share_a_batch(submit_all):
    wide, narrow = {"x": np.ones((1, 3))}, {"x": np.full((1, 2), 5.0)}
    results, shapes = await submit_all([wide, wide, narrow])
    assert shapes == [(2, 3), (1, 2)]
    assert results[2]["y"].tolist() == [[10, 10]]


async def test_a_request_larger_than_a_batch_runs_alone(submit_all):
    results, shapes = await submit_all([inputs(1), inputs(1, 2, 3), inputs(4)], max_batch_size=2)
    assert shapes == [(1,), (3,), (1,)]
    assert results[1]["y"].tolist() == [2, 4, 6]


async def test_a_full_queue_rejects_requests_and_recovers(batcher):
    model = Doubler(is_blocked=True)
    batches = batcher(model, max_batch_size=1, max_queued_batches=2)
    first = asyncio.ensure_future(batches.submit(inputs(0)))
    await asyncio.sleep(0.01)  # the first batch runs
    waiting = [asyncio.ensure_future(batches.submit(inputs(i))) for i in (1, 2)]
    await asyncio.sleep(0)
    with pytest.raises(ServingError) as caught:
        await batches.submit(inputs(3))
    assert caught.value.code is StatusCode.UNAVAILABLE
    model.unblock.set()
    results = [*await asyncio.gather(first, *waiting), await batches.submit(inputs(4))]
    assert [float(result["y"][0]) for result in results] == [0, 2, 4, 8]


@pytest.mark.parametrize("invalid", [{1}, {0, 6}, {2, 3, 4}, set(range(7))])
async def test_an_invalid_request_fails_alone_in_its_batch(submit_all, invalid):
    requests = [inputs(-i if i in invalid else i, 10 + i) for i in range(7)]
    requests[0] = inputs(-0.5 if 0 in invalid else 0, 10)
    results, shapes = await submit_all(requests)
    assert shapes[0] == (14,)
    for i, result in enumerate(results):
        if i in invalid:
            assert result.message == "negative"
        else:
            assert result["y"].tolist() == [2 * i, 20 + 2 * i]


async def test_a_cancelled_request_does_not_run(batcher):
    model = Doubler(is_blocked=True)
    batches = batcher(model, max_batch_size=1)
    first = asyncio.ensure_future(batches.submit(inputs(1)))
    await asyncio.sleep(0.01)
    second = asyncio.ensure_future(batches.submit(inputs(2)))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)
    model.unblock.set()
    assert (await first)["y"].tolist() == [2]
    await batches.close()
    assert len(model.shapes) == 1


async def test_a_model_whose_outputs_lack_the_batch_runs_each_request_alone(batcher):
    async def model(inputs):
        return {"y": np.full(5, inputs["x"].sum())}

    batches = batcher(model, timeout_seconds=0.02)
    results = await asyncio.gather(*(batches.submit(inputs(x)) for x in (1, 2)))
    assert [result["y"].tolist() for result in results] == [[1] * 5, [2] * 5]


async def test_a_request_without_a_batch_dimension_runs_alone(submit_all):
    scalar = {"x": np.array(1.5, "float32")}
    results, shapes = await submit_all([inputs(1), scalar, scalar, inputs(2)])
    assert shapes == [(1,), (), (), (1,)]
    assert [float(result["y"].ravel()[0]) for result in results] == [2, 3, 3, 4]
