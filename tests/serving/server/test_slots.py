"""Threads for small requests while large ones wait."""

import asyncio

import pytest

from regard.serving.server import slots
from regard.serving.server.slots import LargeSlots, SmallSlots

pytestmark = pytest.mark.anyio


class Work:
    """Enters a place, and stays until it may leave."""

    def __init__(self, place):
        self.may_leave, self.is_running = asyncio.Event(), False
        self.task = asyncio.ensure_future(self._run(place))

    async def _run(self, place):
        async with place:
            self.is_running = True
            await self.may_leave.wait()
        self.is_running = False

    async def leave(self):
        self.may_leave.set()
        await self.task


async def start(place, count):
    work = [Work(place) for _ in range(count)]
    await settle()
    return work


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


def running(work):
    return [item.is_running for item in work]


async def test_large_requests_use_all_threads_in_order():
    large = LargeSlots(2)
    work = await start(large, 4)
    assert running(work) == [True, True, False, False]
    await work[1].leave()
    await settle()
    assert running(work) == [True, False, True, False]
    for item in work:
        item.may_leave.set()
    await asyncio.gather(*(item.task for item in work))


async def test_a_small_request_never_waits_for_large_ones_and_reserves_a_thread(monkeypatch):
    monkeypatch.setattr(slots, "_RESERVE_SECONDS", 0.1)
    large = LargeSlots(2)
    small = SmallSlots(2, large)
    work = await start(large, 4)
    (light,) = await start(small, 1)
    assert light.is_running
    await light.leave()
    await work[0].leave()
    await settle()
    assert running(work) == [False, True, False, False]  # one thread is reserved
    await asyncio.sleep(0.3)
    assert running(work) == [False, True, True, False]
    for item in work:
        item.may_leave.set()
    await asyncio.gather(*(item.task for item in work))
    large.close()


async def test_one_thread_runs_both():
    large = LargeSlots(1)
    work = [*await start(large, 1), *await start(SmallSlots(1, large), 2)]
    assert running(work) == [True, True, False]
    for item in work:
        item.may_leave.set()
    await asyncio.gather(*(item.task for item in work))
    large.close()


async def test_a_cancelled_request_leaves_its_place():
    large = LargeSlots(1)
    work = await start(large, 4)
    work[1].task.cancel()  # while it waits
    work[0].may_leave.set()
    await asyncio.sleep(0)
    work[2].task.cancel()  # perhaps when its place has just become free
    await settle()
    assert work[3].is_running
    await work[3].leave()
    assert large._running == 0
