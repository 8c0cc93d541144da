"""Versions that cannot be loaded, or not yet: attempts, pauses, and older versions."""

import asyncio

import pytest
from grpc import StatusCode

from regard.serving.server.errors import ServingError
from regard.serving.server.loading import LoadAttempts
from regard.serving.server.options import ManagerOptions
from regard.serving.server.versions import AVAILABLE, END, START, ModelSpec
from tests.serving.server.fake_servable import (
    ALL,
    FakeServable,
    states,
    version,
)

pytestmark = pytest.mark.anyio


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


async def test_a_replacement_is_loaded_when_its_files_stay_the_same(folder, start):
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
