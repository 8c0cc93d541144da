"""SIGKILL at random moments, again and again: the training ends as if nothing had happened."""

import json
import multiprocessing
import random
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest

from tests.components.trainer.killable import EPOCHS, run, write_rows
from tests.components.trainer.test_resuming import plain
from tests.components.trainer.tiny import stored

KILLS = 20
PATIENCE = 180.0  # seconds for a start


@pytest.fixture(scope="module")
def processes():
    """Starts trainings in processes of their own, each as new, but with the imports done."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.components.trainer.killable"])
    return context


def start(processes, folder, rows):
    folder.mkdir(exist_ok=True)
    done = processes.Value("i", 0)
    process = processes.Process(target=run, args=(str(folder), str(rows), done))
    process.start()
    return process, done


def kill(process, done, folder, draw):
    """At a random moment: after some batches, in the middle of a write, or before the first one."""
    way, deadline = draw.random(), time.monotonic() + PATIENCE
    batches = draw.randint(1, 15)
    while way > 0.15 and not (
        done.value >= batches and (way > 0.6 or any((folder / "ck").glob(".*.tmp")))
    ):
        assert process.is_alive(), "the training ended by itself; make it longer"
        assert time.monotonic() < deadline, "no batch in three minutes"
        time.sleep(0.0005)
    if way > 0.6:
        time.sleep(draw.uniform(0.0, 0.03))  # anywhere: in a step, in an evaluation, between them
    elif way < 0.15:
        time.sleep(draw.uniform(0.0, 2.0))
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def finish(process, folder):
    """The position, the weights it gives, and the state that it leaves."""
    process.join()
    assert process.exitcode == 0
    with np.load(folder / "end.npz") as file:
        weights = [file[name] for name in file.files]
    position = json.loads((folder / "position.json").read_text())
    return position, weights, stored(folder / "ck/last.npz")


@pytest.mark.slow
def test_twenty_kills_change_nothing(processes, tmp_path):
    write_rows(tmp_path)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    process, done = start(processes, whole, tmp_path)
    expected, weights, state = finish(process, whole)
    assert expected["step"] == done.value > 200
    draw, seen, torn = random.Random(5), [], 0
    for _ in range(KILLS):
        process, done = start(processes, cut, tmp_path)
        kill(process, done, cut, draw)
        seen.append(done.value)
        torn += any((cut / "ck").glob(".*.tmp"))
    assert torn > 0  # kills have hit writes
    process, done = start(processes, cut, tmp_path)
    position, ours, left = finish(process, cut)
    assert sum(seen) + done.value > expected["step"]  # something was really lost
    assert plain(SimpleNamespace(**position)) == plain(SimpleNamespace(**expected))
    assert len(position["history"]) > 20
    for one, other in zip((*ours, *left), (*weights, *state), strict=True):
        np.testing.assert_array_equal(one, other)
    counts, order = diary(left)
    np.testing.assert_array_equal(counts, 1)  # each row once an epoch
    assert np.count_nonzero(order) == position["batches"]
    kept = {f"step-{step}.npz" for step in position["averaged"]["steps"]}
    assert {path.name for path in (cut / "ck").iterdir()} == {"last.npz", "best.npz", *kept}


def diary(state):
    (counts,) = (value for value in state if value.shape[:1] == (EPOCHS,) and value.ndim == 2)
    order = next(value for value in state if value.dtype == np.int32 and value.ndim == 1)
    return counts, order
