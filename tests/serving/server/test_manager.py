"""The life cycle of versions: replacing, unloading, labels, and requests."""

import asyncio
import contextlib
import gc
import shutil
import threading

import numpy as np
import pytest
from grpc import StatusCode

from regard.core import locks
from regard.serving.server.errors import ServingError, invalid
from regard.serving.server.manager import ModelManager
from regard.serving.server.model_config import ModelConfig, VersionPolicy
from regard.serving.server.options import LOAD_THREADS, BatchingOptions, ManagerOptions
from regard.serving.server.versions import AVAILABLE, END, ModelSpec, list_versions
from tests.serving.server.fake_servable import (
    ALL,
    INPUTS,
    SERVABLES,
    WARM_UPS,
    FakeServable,
    states,
    version,
    wait_until_unloaded,
)

pytestmark = pytest.mark.anyio


async def test_a_new_version_takes_over_and_the_old_one_finishes_its_requests(
    folder, start, monkeypatch
):
    may_end, run = threading.Event(), FakeServable.run

    def wait(servable, *arguments):
        assert may_end.wait(60)
        return run(servable, *arguments)

    monkeypatch.setattr(FakeServable, "run", wait)
    created = await start()
    request = asyncio.ensure_future(version(created))
    await asyncio.sleep(0)
    (folder / "2").mkdir()
    await created.poll()
    assert states(created) == {2: AVAILABLE, 1: "UNLOADING"}
    assert created.find(ModelSpec("m")).number == 2
    with pytest.raises(ServingError, match="No version 1"):
        await version(created, 1)
    may_end.set()
    assert await request == 1
    await wait_until_unloaded(created)
    assert states(created) == {2: AVAILABLE, 1: END}
    shutil.rmtree(folder / "1")
    await created.poll()
    assert states(created) == {2: AVAILABLE}


async def test_a_loaded_version_is_locked(folder, start):
    def add_version(number):
        (folder / number).mkdir(exist_ok=True)
        (folder / number / "saved_model.pb").touch()

    def is_locked(number):
        try:
            locks.acquire_existing(folder / number / "saved_model.pb").release()
        except BlockingIOError:
            return True
        return False

    add_version("1")
    created = await start(load_retries=0)
    assert is_locked("1")
    add_version("2")
    (folder / "2" / "broken").touch()
    await created.poll()
    assert (is_locked("1"), is_locked("2")) == (True, False)
    add_version("3")
    await created.poll()
    await wait_until_unloaded(created)
    assert (is_locked("1"), is_locked("3")) == (False, True)
    await created.close()
    assert not is_locked("3")


async def test_a_model_whose_warm_up_fails_does_not_stay_in_memory(folder, start):
    (folder / "1" / "cold").touch()
    created = await start(load_retries=0)
    assert created.list_states(ModelSpec("m"))[0].error.message == "cold"
    for _ in range(500):  # the thread that loaded it has to forget it, too
        gc.collect()
        if not SERVABLES:
            break
        await asyncio.sleep(0.01)
    assert not SERVABLES


async def test_the_first_version_is_available_before_it_is_all_warm(folder, start):
    WARM_UPS.clear()
    created = await start()
    (folder / "2").mkdir()
    await created.poll()
    assert await version(created) == 2
    await created.close()  # waits for what is warmed up in the background
    assert WARM_UPS == [(1, "serving_default"), (1, None), (2, None)]


async def test_a_warm_up_that_fails_in_the_background_does_not_stop_the_server(start, monkeypatch):
    def warm_up(servable, only=None):
        if only is None:
            raise RuntimeError("an engine failed")

    monkeypatch.setattr(FakeServable, "warm_up", warm_up)
    created = await start()
    await created.close()
    assert created._runner._pool._shutdown


async def test_rows_share_a_run_only_if_the_signature_has_a_batch(start, monkeypatch):
    runs, run = [], FakeServable.run

    def record(servable, signature, inputs, timeout):
        runs.append((signature, len(inputs["x"])))
        return run(servable, signature, inputs, timeout)

    monkeypatch.setattr(FakeServable, "run", record)
    created = await start(batching=BatchingOptions(timeout_seconds=0.2))
    names = ["one_row"] * 3 + ["rows"] * 3
    await asyncio.gather(*(created.predict(ModelSpec("m"), name, INPUTS) for name in names))
    assert sorted(runs) == [("one_row", 1)] * 3 + [("rows", 3)]


@pytest.mark.parametrize(
    ("policy", "served"),
    [
        (VersionPolicy(), [4]),
        (VersionPolicy(latest=2), [3, 4]),
        (ALL, [1, 3, 4]),
        (VersionPolicy(None, specific=(1, 4, 9)), [1, 4]),
    ],
)
async def test_policies(folder, start, policy, served):
    for name in ("3", "0004", "005x", "-6"):
        (folder / name).mkdir()
    assert sorted(list_versions(folder)) == [1, 3, 4]
    created = await start(policy)
    assert sorted(states(created)) == served


async def test_a_new_policy_unloads_and_reloads(folder, start):
    (folder / "2").mkdir()
    created = await start(ALL)
    await created.reload([ModelConfig("m", folder, VersionPolicy(None, specific=(1,)))])
    await wait_until_unloaded(created)
    assert await version(created) == 1
    await created.reload([ModelConfig("m", folder, ALL)])
    assert await version(created) == 2


async def test_a_loaded_version_stays_when_its_folder_disappears(folder, start):
    created = await start()
    shutil.rmtree(folder)
    await created.poll()
    assert await version(created) == 1


async def test_labels(folder, start):
    (folder / "2").mkdir()
    created = await start()
    # A label may name a version of the same reload.
    both = VersionPolicy(None, specific=(1, 2))
    await created.reload([ModelConfig("m", folder, both, {"stable": 1, "canary": 2})])
    with pytest.raises(ServingError, match="names version 5, which is not available"):
        await created.reload([ModelConfig("m", folder, both, {"stable": 5})])
    for label, number in (("stable", 1), ("canary", 2)):
        assert created.find(ModelSpec("m", label=label)).number == number


@pytest.fixture
def slow_loading(monkeypatch):
    """Make loading wait for the first event, and set the second one meanwhile."""
    may_end, is_loading, create = threading.Event(), threading.Event(), FakeServable.__init__

    def wait(servable, *arguments):
        is_loading.set()
        assert may_end.wait(60)
        create(servable, *arguments)

    def block():
        monkeypatch.setattr(FakeServable, "__init__", wait)
        return may_end, is_loading

    yield block
    may_end.set()


async def test_a_version_that_loads_while_its_model_is_removed_is_unloaded(
    folder, start, slow_loading
):
    created = await start()
    (folder / "2").mkdir()
    (folder / "2" / "saved_model.pb").touch()
    may_end, is_loading = slow_loading()
    poll = asyncio.ensure_future(created.poll())
    await asyncio.to_thread(is_loading.wait, 60)
    reload = asyncio.ensure_future(created.reload([]))
    await asyncio.sleep(0.05)
    may_end.set()
    await asyncio.gather(poll, reload)
    await wait_until_unloaded(created)
    locks.acquire_existing(folder / "2" / "saved_model.pb").release()
    assert created.names == []


async def test_closing_does_not_wait_for_a_version_that_is_being_loaded(
    folder, start, slow_loading
):
    created = await start(poll_seconds=0.02)
    _, is_loading = slow_loading()
    (folder / "2").mkdir()
    await asyncio.to_thread(is_loading.wait, 60)
    await created.close()
    assert any(thread.name.startswith(LOAD_THREADS) for thread in threading.enumerate())


async def test_a_label_may_name_a_version_that_a_scan_is_loading(folder, start, slow_loading):
    created = await start(ALL)
    (folder / "2").mkdir()
    may_end, is_loading = slow_loading()
    poll = asyncio.ensure_future(created.poll())
    await asyncio.to_thread(is_loading.wait, 60)
    labels = {"canary": 2}
    reload = asyncio.ensure_future(created.reload([ModelConfig("m", folder, ALL, labels)]))
    await asyncio.sleep(0.05)
    may_end.set()
    await asyncio.gather(poll, reload)
    assert created.find(ModelSpec("m", label="canary")).number == 2


async def test_too_many_requests_are_rejected(start):
    created = await start(batching=BatchingOptions(1, 0, 2))
    result = await asyncio.gather(*(version(created) for _ in range(3)), return_exceptions=True)
    codes = [getattr(error, "code", None) for error in result]
    assert codes == [None, None, StatusCode.UNAVAILABLE]
    assert await version(created) == 1


async def test_large_requests_leave_room_for_small_ones(start, monkeypatch):
    may_end, run = threading.Event(), FakeServable.run

    def wait(servable, signature, inputs, timeout):
        if len(inputs["x"]) > 8:
            assert may_end.wait(60)
        return run(servable, signature, inputs, timeout)

    monkeypatch.setattr(FakeServable, "run", wait)
    created = await start(threads=2, batching=BatchingOptions(max_queued_batches=4))
    large = [
        asyncio.ensure_future(created.predict(ModelSpec("m"), "", {"x": np.zeros(256)}))
        for _ in range(8)
    ]
    await asyncio.sleep(0.05)
    try:
        assert [await version(created) for _ in range(3)] == [1, 1, 1]
        assert not any(request.done() and not request.exception() for request in large)
    finally:
        may_end.set()
        results = await asyncio.gather(*large, return_exceptions=True)
    codes = [getattr(error, "code", None) for error in results]
    assert codes.count(StatusCode.UNAVAILABLE) >= 2  # their queue is full, that of others is not


async def test_it_is_ready_while_a_thread_is_in_time(start, monkeypatch):
    may_end = threading.Event()
    monkeypatch.setattr("regard.serving.server.runner._OVERDUE_SECONDS", 0.0)

    def wait(servable, signature, inputs, timeout):
        assert may_end.wait(60)
        return {"version": np.full(len(inputs["x"]), 1)}

    created = await start(threads=2, run_seconds=0.05)
    assert created.is_ready
    monkeypatch.setattr(FakeServable, "run", wait)
    requests = [asyncio.ensure_future(created.predict(ModelSpec("m"), "one_row", INPUTS))]
    await asyncio.sleep(0.2)
    assert created.is_ready
    requests += [asyncio.ensure_future(created.predict(ModelSpec("m"), "one_row", INPUTS))]
    await asyncio.sleep(0.2)
    assert not created.is_ready
    may_end.set()
    await asyncio.gather(*requests)
    assert created.is_ready
    await created.reload([])
    assert not created.is_ready


async def test_batches_may_begin_while_the_overdue_ones_are_counted(start):
    created = await start()
    started = created._runner._started

    class BeginsAnother(float):
        def __lt__(self, other):
            started[object()] = 0.0  # as a thread may at this moment
            return super().__lt__(other)

    started[object()] = BeginsAnother(0.0)
    assert created.is_ready


async def test_it_polls_for_new_versions(folder, start):
    created = await start(poll_seconds=0.02)
    (folder / "2").mkdir()
    for _ in range(200):
        await asyncio.sleep(0.01)
        if await version(created) == 2:
            break
    assert await version(created) == 2


async def test_versions_are_copied_before_a_poll_and_an_error_stops_nothing(folder):
    results = [lambda: (folder / "2").mkdir(), lambda: 1 / 0, lambda: (folder / "3").mkdir()]
    config = ModelConfig("m", folder, refresh=lambda: results.pop(0)())
    manager = ModelManager([config], ManagerOptions(poll_seconds=0), load=FakeServable)
    try:
        await manager.start()
        for expected in (2, 2, 3):
            assert await version(manager) == expected
            if results:
                await manager.poll()
    finally:
        await manager.close()


async def test_one_batcher_for_each_signature(start):
    created = await start()
    for signature in ("a", "b", "a"):
        await created.predict(ModelSpec("m"), signature, INPUTS)
    assert set(created.find(ModelSpec("m")).batchers) == {("a", True), ("b", True)}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (None, "OK"),
        (invalid("no"), "INVALID_ARGUMENT"),
        (KeyError("unexpected"), "INTERNAL"),
        (asyncio.CancelledError(), "CANCELLED"),
    ],
)
async def test_requests_are_counted_by_their_result(start, error, status):
    created = await start()
    for model in ("m", "unknown"):
        expected = contextlib.nullcontext() if error is None else pytest.raises(type(error))
        with expected, created.track_request(model, "Predict", "GRPC"):
            if error is not None:
                raise error
    text = created.metrics.text()
    assert f':request_count{{model_name="m",status="{status}"}} 1' in text
    assert f':request_count{{model_name="",status="{status}"}} 1' in text
    assert ("request_latency" in text) == (error is None)
