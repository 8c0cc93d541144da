"""SIGKILL at random moments, twenty times: the training ends as an uninterrupted one."""

import json
import multiprocessing
import random
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest

from tests.components.trainer.killable_training import EPOCHS, run, write_splits
from tests.components.trainer.test_resume import without_times
from tests.components.trainer.tiny_training import assert_equal_arrays, checkpoint_arrays

KILLS = 20
START_TIMEOUT = 180.0  # seconds


@pytest.fixture(scope="module")
def processes():
    """A context that starts each training in a new process, with the imports preloaded."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.components.trainer.killable_training"])
    return context


def start(processes, folder, data):
    folder.mkdir(exist_ok=True)
    batches = processes.Value("i", 0)
    process = processes.Process(target=run, args=(str(folder), str(data), batches))
    process.start()
    return process, batches


def kill(process, batch_counter, folder, draw):
    """Kill at a random moment: after some batches, during a write, or before the first batch."""
    mode, deadline = draw.random(), time.monotonic() + START_TIMEOUT
    batches = draw.randint(1, 15)
    while mode > 0.15 and not (
        batch_counter.value >= batches and (mode > 0.6 or any((folder / "ck").glob(".*.tmp")))
    ):
        assert process.is_alive(), "the training ended by itself: make it longer"
        assert time.monotonic() < deadline, "no batch in three minutes"
        time.sleep(0.0005)
    if mode > 0.6:
        time.sleep(draw.uniform(0.0, 0.03))  # in a step, in an evaluation, or between them
    elif mode < 0.15:
        time.sleep(draw.uniform(0.0, 2.0))
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def finish(process, folder):
    """Wait for the end, and return the train state, the weights and the last checkpoint."""
    process.join()
    assert process.exitcode == 0
    with np.load(folder / "end.npz") as file:
        weights = [file[name] for name in file.files]
    state = json.loads((folder / "state.json").read_text())
    return state, weights, checkpoint_arrays(folder / "ck/last.npz")


@pytest.mark.slow
def test_twenty_kills_do_not_change_the_result(processes, tmp_path):
    write_splits(tmp_path)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    process, counter = start(processes, whole, tmp_path)
    expected, weights, checkpoint = finish(process, whole)
    assert expected["step"] == counter.value > 200
    draw, counts, torn = random.Random(5), [], 0
    for _ in range(KILLS):
        process, counter = start(processes, cut, tmp_path)
        kill(process, counter, cut, draw)
        counts.append(counter.value)
        torn += any((cut / "ck").glob(".*.tmp"))
    assert torn > 0  # some kills hit a write
    process, counter = start(processes, cut, tmp_path)
    state, final_weights, final_checkpoint = finish(process, cut)
    assert sum(counts) + counter.value > expected["step"]  # some batches were lost
    assert without_times(SimpleNamespace(**state)) == without_times(SimpleNamespace(**expected))
    assert len(state["history"]) > 20
    assert_equal_arrays((*final_weights, *final_checkpoint), (*weights, *checkpoint))
    row_counts, order = recorded_rows(final_checkpoint)
    np.testing.assert_array_equal(row_counts, 1)  # each row once per epoch
    assert np.count_nonzero(order) == state["batches"]
    snapshots = {f"step-{step}.npz" for step in state["average"]["steps"]}
    assert {path.name for path in (cut / "ck").iterdir()} == {"last.npz", "best.npz", *snapshots}


def recorded_rows(arrays):
    (counts,) = (value for value in arrays if value.shape[:1] == (EPOCHS,) and value.ndim == 2)
    order = next(value for value in arrays if value.dtype == np.int32 and value.ndim == 1)
    return counts, order
