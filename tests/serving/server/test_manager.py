"""The life cycle of versions: loading, replacing, unloading, labels."""

import asyncio
import contextlib
import gc
import shutil
import threading
import weakref

import numpy as np
import pytest
from grpc import StatusCode

from regard.serving import locks
from regard.serving.server.errors import ServingError, invalid
from regard.serving.server.loading import LoadAttempts
from regard.serving.server.manager import ModelManager
from regard.serving.server.model_config import ModelConfig, VersionPolicy
from regard.serving.server.options import BatchingOptions, ManagerOptions
from regard.serving.server.versions import AVAILABLE, END, START, ModelSpec, list_versions

pytestmark = pytest.mark.anyio
INPUTS = {"x": np.zeros(1)}
ALL = VersionPolicy(None)
SERVABLES = weakref.WeakSet()
WARM_UPS = []


class FakeServable:
    """A servable that returns its version."""

    def __init__(self, name, path):
        self.name, self.version = name, int(path.name)
        if (path / "broken").exists():
            raise ServingError(StatusCode.INTERNAL, "broken")
        if (path / "partial").exists():
            raise ServingError(StatusCode.UNAVAILABLE, "partial")
        if (path / "unexpected").exists():
            raise KeyError("unexpected")
        self.is_cold = (path / "cold").exists()

    def try_one_row(self, timeout):
        pass

    def warm_up(self, only=None):
        WARM_UPS.append((self.version, only))
        if self.is_cold:
            SERVABLES.add(self)
            raise invalid("cold")

    def close(self):
        pass

    def validate_inputs(self, signature, inputs):
        pass

    def is_batchable(self, signature):
        return signature != "one_row"

    def select_outputs(self, signature, requested):
        return ["version"]

    def run(self, signature, inputs, timeout):
        return {"version": np.full(len(inputs["x"]), self.version)}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "1").mkdir()
    return tmp_path


@pytest.fixture
async def start(folder):
    """Start managers of a folder, and close them at the end of the test."""
    managers = []

    async def start(policy=None, **options):
        config = ModelConfig("m", folder, policy or VersionPolicy())
        options = ManagerOptions(**{"poll_seconds": 0, "settle_seconds": 0, **options})
        managers.append(ModelManager([config], options, load=FakeServable))
        await managers[-1].start()
        return managers[-1]

    yield start
    for one in managers:
        await one.close()


def states(created):
    return {one.number: one.state for one in created.list_states(ModelSpec("m"))}


async def wait_until_unloaded(created):
    for _ in range(500):
        if not created._tasks:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("versions are still unloading")


async def version(created, number=None):
    return int((await created.predict(ModelSpec("m", number), "", INPUTS)).outputs["version"][0])


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


async def test_a_broken_version_does_not_replace_a_good_one(folder, start):
    created = await start(load_retries=1, retry_seconds=0)
    (folder / "2").mkdir()
    (folder / "2" / "broken").touch()
    await created.poll()
    assert states(created) == {2: START, 1: AVAILABLE}
    assert await version(created) == 1
    await created.poll()
    assert states(created) == {2: END, 1: AVAILABLE}
    assert created.list_states(ModelSpec("m", 2))[0].error.message == "broken"
    await created.poll()  # retries are limited
    assert await version(created) == 1
    # A repaired version has a new number.
    (folder / "3").mkdir()
    await created.poll()
    assert await version(created) == 3


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


async def test_an_unexpected_error_stops_neither_the_server_nor_other_versions(folder, start):
    (folder / "2").mkdir()
    (folder / "2" / "unexpected").touch()
    created = await start(ALL, load_retries=0)
    assert states(created) == {2: END, 1: AVAILABLE}
    assert created.list_states(ModelSpec("m", 2))[0].error.message == "Could not load version 2"
    assert await version(created) == 1


async def test_a_failed_load_is_repeated_later(folder, start):
    (folder / "1" / "broken").touch()
    created = await start(load_retries=3, retry_seconds=0.05)
    (folder / "1" / "broken").unlink()
    await created.poll()
    with pytest.raises(ServingError):
        await version(created)  # too early
    await asyncio.sleep(0.06)
    await created.poll()
    assert await version(created) == 1


async def test_a_version_is_tried_again_as_long_as_it_changes(folder, start):
    created = await start(load_retries=0, retry_seconds=0.01)
    (folder / "2").mkdir()
    (folder / "2" / "partial").touch()
    for number in range(3):
        await created.poll()
        (state,) = created.list_states(ModelSpec("m", 2))
        assert (state.state, state.error.message) == (END, "partial")
        assert await version(created) == 1
        await created.poll()  # not tried again, because nothing has changed
        assert state.attempts.failures == 1
        (folder / "2" / f"file-{number}").touch()
        await asyncio.sleep(0.02)
    (folder / "2" / "partial").unlink()
    await created.poll()
    assert states(created)[2] == AVAILABLE
    assert await version(created) == 2


async def test_a_version_that_changes_while_it_is_loaded_is_not_used(folder, start, monkeypatch):
    created = await start(retry_seconds=0)
    (folder / "2").mkdir()

    def write(servable, timeout):
        if servable.version == 2:
            (folder / "2" / "late").touch()

    monkeypatch.setattr(FakeServable, "try_one_row", write)
    await created.poll()
    assert states(created) == {2: START, 1: AVAILABLE}
    assert "still being written" in created.list_states(ModelSpec("m", 2))[0].error.message
    monkeypatch.setattr(FakeServable, "try_one_row", lambda *_: None)
    await created.poll()
    assert await version(created) == 2


async def test_a_replacement_is_loaded_when_its_files_have_settled(folder, start):
    created = await start(settle_seconds=0.2, retry_seconds=0)
    (folder / "2").mkdir()
    poll = asyncio.ensure_future(created.poll())
    await asyncio.sleep(0.1)
    (folder / "2" / "late").touch()
    await poll
    assert states(created) == {2: START, 1: AVAILABLE}
    await created.poll()
    assert await version(created) == 2


async def test_pauses_grow_while_the_files_change(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("regard.serving.server.loading.time.monotonic", lambda: clock[0])
    options, attempts, tries = (
        ManagerOptions(load_retries=2, retry_seconds=60.0),
        LoadAttempts(),
        [],
    )
    for second in range(400):  # something changes every second until 200
        clock[0] = 100.0 + second
        if attempts.is_due((("file", min(second, 200), 0, 0),), options):
            attempts.add_failure(options)
            tries.append(second)
    assert tries == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363]
    assert attempts.is_over(options)


async def test_an_older_version_is_served_if_the_newest_cannot_be(folder, start):
    for number in ("2", "3"):
        (folder / number).mkdir()
    (folder / "3" / "broken").touch()
    created = await start(load_retries=0, retry_seconds=0)
    assert states(created) == {3: END, 2: AVAILABLE}
    assert await version(created) == 2
    (folder / "3" / "broken").unlink()
    await created.poll()
    assert await version(created) == 3


async def test_a_version_that_cannot_be_loaded_is_an_error_of_the_server(folder, start):
    (folder / "1" / "broken").touch()
    created = await start()
    for number in (None, 1):
        with pytest.raises(ServingError) as caught:
            await version(created, number)
        assert caught.value.code is StatusCode.UNAVAILABLE
    with pytest.raises(ServingError) as caught:
        await version(created, 5)
    assert caught.value.code is StatusCode.NOT_FOUND


async def test_what_is_not_a_folder_of_a_version(folder, start):
    (folder / "2").write_text("a file")
    (folder / "3").symlink_to("nowhere")
    (folder / "4").symlink_to("4")
    (folder / str(2**63)).mkdir()
    (folder / "9").symlink_to(folder / "1")
    created = await start(ALL)
    assert states(created) == {1: AVAILABLE, 9: AVAILABLE}


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
    codes = [getattr(one, "code", None) for one in result]
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
        assert not any(one.done() and not one.exception() for one in large)
    finally:
        may_end.set()
        results = await asyncio.gather(*large, return_exceptions=True)
    codes = [getattr(one, "code", None) for one in results]
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
