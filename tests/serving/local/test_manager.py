"""What happens when versions come and go: what is loaded, what still answers, what is let go."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil

import numpy as np
import pytest

from serving.local.manager import PER_MODEL, Manager, Options
from serving.local.model_config import Batching, ModelConfig, Policy
from serving.local.status import Code, ServingError
from serving.local.versions import AVAILABLE, END, START, versions_in
from serving.saved_model import IDENTIFIER

ASKED = {"x": np.zeros(1)}


class Fake:
    """A servable that answers with its version, slowly if it is told to."""

    def __init__(self, name, version, path):
        self.name, self.version = name, version
        if (path / "broken").exists():
            raise ServingError(Code.INTERNAL, "broken")
        if (path / "unforeseen").exists():
            raise KeyError("unforeseen")

    def warm_up(self):
        return 0

    def run(self, signature, inputs):
        return {"version": np.full(len(inputs["x"]), self.version)}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "1").mkdir()
    return tmp_path


def manager(folder, policy=None, **options):
    config = ModelConfig("m", folder, policy or Policy())
    return Manager([config], Options(poll_seconds=0, **options), load=Fake)


def states(made):
    return {one.number: one.state for one in made.states("m")}


async def settled(made):
    for _ in range(500):
        if not made._tasks:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it does not settle")


async def version(made, number=None):
    with made.use("m", number) as used:
        return int((await made.ask(used, "", ASKED))["version"][0])


def run(test):
    asyncio.run(test())


def test_a_new_version_takes_over_and_the_old_one_answers_what_it_was_asked(folder):
    async def test():
        made = manager(folder)
        await made.start()
        assert await version(made) == 1
        with made.use("m") as old:
            (folder / "2").mkdir()
            await made.poll()
            assert states(made) == {2: AVAILABLE, 1: "UNLOADING"}
            assert await version(made) == 2
            with pytest.raises(ServingError, match="Specific"):
                await version(made, 1)
            assert (await made.ask(old, "", ASKED))["version"][0] == 1
        await settled(made)
        assert states(made) == {2: AVAILABLE, 1: END}
        shutil.rmtree(folder / "1")
        await made.poll()
        assert states(made) == {2: AVAILABLE}
        await made.close()

    run(test)


def test_a_version_holds_its_folder_as_long_as_it_is_loaded(folder):
    def is_held(number):
        descriptor = os.open(folder / number, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    async def test():
        made = manager(folder, load_retries=0)
        assert not is_held("1")
        await made.start()
        assert is_held("1")
        (folder / "2").mkdir()
        (folder / "2" / "broken").touch()
        await made.poll()
        assert (is_held("1"), is_held("2")) == (True, False)
        (folder / "3").mkdir()
        await made.poll()
        await settled(made)
        assert (is_held("1"), is_held("3")) == (False, True)
        await made.close()
        assert not is_held("3")

    run(test)


def test_a_version_that_cannot_be_loaded_does_not_take_over(folder):
    async def test():
        made = manager(folder, load_retries=1, retry_seconds=0)
        await made.start()
        (folder / "2").mkdir()
        (folder / "2" / "broken").touch()
        await made.poll()
        assert states(made) == {2: START, 1: AVAILABLE}
        assert await version(made) == 1
        await made.poll()
        assert states(made) == {2: END, 1: AVAILABLE}
        assert made.states("m", 2)[0].error.message == "broken"
        await made.poll()  # it is not tried for ever
        assert await version(made) == 1
        # Put right under a number of its own, it is served.
        (folder / "3").mkdir()
        await made.poll()
        assert await version(made) == 3
        await made.close()

    run(test)


def test_what_nobody_foresaw_stops_neither_the_server_nor_other_versions(folder):
    async def test():
        (folder / "2").mkdir()
        (folder / "2" / "unforeseen").touch()
        made = manager(folder, Policy(None, every=True), load_retries=0)
        await made.start()
        assert states(made) == {2: END, 1: AVAILABLE}
        assert made.states("m", 2)[0].error.message == "Could not load version 2"
        assert await version(made) == 1
        await made.close()

    run(test)


def test_one_that_fails_is_tried_again_later(folder):
    async def test():
        (folder / "1" / "broken").touch()
        made = manager(folder, load_retries=3, retry_seconds=0.05)
        await made.start()
        (folder / "1" / "broken").unlink()
        await made.poll()
        with pytest.raises(ServingError):
            await version(made)  # too early
        await asyncio.sleep(0.06)
        await made.poll()
        assert await version(made) == 1
        await made.close()

    run(test)


@pytest.mark.parametrize(
    ("policy", "served"),
    [
        (Policy(), [4]),
        (Policy(latest=2), [3, 4]),
        (Policy(None, every=True), [1, 3, 4]),
        (Policy(None, specific=(1, 4, 9)), [1, 4]),
    ],
)
def test_policies(folder, policy, served):
    for name in ("3", "0004", "005x", "-6"):
        (folder / name).mkdir()
    assert sorted(versions_in(folder)) == [1, 3, 4]

    async def test():
        made = manager(folder, policy)
        await made.start()
        assert sorted(states(made)) == served
        await made.close()

    run(test)


def test_another_policy_lets_go_and_brings_back(folder):
    async def test():
        (folder / "2").mkdir()
        made = manager(folder, Policy(None, every=True))
        await made.start()
        await made.reload([ModelConfig("m", folder, Policy(None, specific=(1,)))])
        await settled(made)
        assert await version(made) == 1
        await made.reload([ModelConfig("m", folder, Policy(None, every=True))])
        assert await version(made) == 2
        await made.close()

    run(test)


def test_what_still_answers_stays_where_its_folder_is_gone(folder):
    async def test():
        made = manager(folder)
        await made.start()
        shutil.rmtree(folder)
        await made.poll()
        assert await version(made) == 1
        await made.close()

    run(test)


def test_labels(folder):
    async def test():
        (folder / "2").mkdir()
        every = Policy(None, every=True)
        made = manager(folder, every)
        await made.start()
        await made.reload([ModelConfig("m", folder, every, {"stable": 1, "canary": 2})])
        with made.use("m", label="stable") as used:
            assert used.number == 1
        with pytest.raises(ServingError, match="label to version 5"):
            await made.reload([ModelConfig("m", folder, every, {"stable": 5})])
        with made.use("m", label="stable") as used:
            assert used.number == 1
        await made.close()

    run(test)


def test_too_many_requests_are_refused_at_once(folder):
    async def test():
        made = manager(folder, most_waiting=2)
        await made.start()
        with made.use("m") as used:
            asked = [asyncio.ensure_future(made.ask(used, "", ASKED)) for _ in range(3)]
            found = await asyncio.gather(*asked, return_exceptions=True)
        assert [getattr(one, "code", None) for one in found] == [None, None, Code.UNAVAILABLE]
        assert await version(made) == 1
        await made.close()

    run(test)


def test_it_looks_again_by_itself(folder):
    async def test():
        config = ModelConfig("m", folder)
        made = Manager([config], Options(poll_seconds=0.02), load=Fake)
        await made.start()
        (folder / "2").mkdir()
        for _ in range(200):
            await asyncio.sleep(0.01)
            if await version(made) == 2:
                break
        assert await version(made) == 2
        await made.close()

    run(test)


def test_a_version_says_itself_how_it_is_batched(folder):
    (folder / "2").mkdir()
    (folder / "2" / PER_MODEL).write_text("max_batch_size { value: 3 }")

    def batching(**options):
        async def ask():
            made = manager(folder, Policy(None, every=True), **options)
            await made.start()
            found = {}
            for number in (1, 2):
                with made.use("m", number) as used:
                    await made.ask(used, "", ASKED)
                    found[number] = used.batching, len(used.batchers)
            await made.close()
            return found

        return asyncio.run(ask())

    common = Batching(max_batch_size=7)
    own = Batching(max_batch_size=3)
    assert batching(batching=common, per_model=True) == {1: (None, 0), 2: (own, 1)}
    assert batching(batching=common) == {1: (common, 1), 2: (common, 1)}
    assert batching(per_model=True) == {1: (None, 0), 2: (None, 0)}


def test_versions_that_say_it_themselves_share_the_threads_of_all(folder):
    made = manager(folder, batching=Batching(num_batch_threads=3), per_model=True, threads=7)
    assert made._running._max_workers == 3


def test_a_wrong_file_of_batches_ends_its_version(folder):
    (folder / "1" / PER_MODEL).write_text("max_batch_size: 3")

    async def load():
        made = manager(folder, batching=Batching(), per_model=True, load_retries=0)
        await made.start()
        (found,) = made.states("m")
        await made.close()
        return found

    found = asyncio.run(load())
    assert (found.state, found.error.code) == (END, Code.INVALID_ARGUMENT)
    assert found.error.message.startswith(f"{PER_MODEL}:1:")


def test_a_version_that_names_its_run_is_counted(folder):
    (folder / "1" / IDENTIFIER).parent.mkdir()
    (folder / "1" / IDENTIFIER).write_text("0123")

    async def load():
        made = manager(folder)
        await made.start()
        await made.close()
        return made.metrics.text()

    assert 'mlmd_map{model_name="m",version="1"} 0' in asyncio.run(load())


def test_a_label_may_be_of_a_version_that_comes_with_it(folder):
    (folder / "2").mkdir()

    async def relabel():
        made = manager(folder)
        await made.start()
        both = Policy(None, specific=(1, 2))
        await made.reload([ModelConfig("m", folder, both, {"stable": 1, "canary": 2})])
        found = {label: made.find("m", label=label).number for label in ("stable", "canary")}
        with pytest.raises(ServingError, match="not currently available"):
            await made.reload([ModelConfig("m", folder, both, {"stable": 7})])
        after = made.find("m", label="stable").number
        await made.close()
        return found, after

    assert asyncio.run(relabel()) == ({"stable": 1, "canary": 2}, 1)
