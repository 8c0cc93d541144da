"""SIGKILL at random moments, twenty times: the training ends as an uninterrupted one."""

import json
import multiprocessing
import random
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest

from regard.components.trainer.callbacks import TrainingProgress
from regard.components.trainer.training_loop import set_seed
from tests.components.trainer.test_resume import OPTIONS, without_times
from tests.components.trainer.tiny_training import (
    assert_equal_arrays,
    checkpoint_arrays,
    train,
    training_config,
)

KILLS = 20
LONG = {**OPTIONS, "max_epochs": 25, "evaluate_every": 7, "deterministic": True}


def run(folder, batch_counter):
    """Train to the end, or resume; count the batches of this process."""
    on_train_batch_end = TrainingProgress.on_train_batch_end

    def count(self, batch, logs=None):
        on_train_batch_end(self, batch, logs)
        batch_counter.value += 1

    TrainingProgress.on_train_batch_end = count
    set_seed(training_config(**LONG))
    model, state = train(folder, **LONG, checkpoint_seconds=0.02)
    np.savez(folder / "end.npz", *model.get_weights())
    (folder / "state.json").write_text(json.dumps(vars(state)))


@pytest.fixture(scope="module")
def start():
    """Starts trainings in processes with the imports preloaded."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])

    def start_process(folder):
        folder.mkdir(exist_ok=True)
        batches = context.Value("i", 0)
        process = context.Process(target=run, args=(folder, batches))
        process.start()
        return process, batches

    return start_process


def kill(process, batch_counter, folder, draw):
    """Kill after some batches, during a write, or before the first batch."""
    mode, batches = draw.random(), draw.randint(1, 15)
    deadline = time.monotonic() + 180
    while mode > 0.15 and not (
        batch_counter.value >= batches and (mode > 0.6 or any((folder / "ck").glob(".*.tmp")))
    ):
        assert process.is_alive(), "the training ended: make it longer"
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
    state = SimpleNamespace(**json.loads((folder / "state.json").read_text()))
    return without_times(state), (*weights, *checkpoint_arrays(folder / "ck/last.npz"))


@pytest.mark.slow
def test_twenty_kills_do_not_change_the_result(start, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    process, counter = start(whole)
    expected, arrays = finish(process, whole)
    needed, draw, batches, torn = counter.value, random.Random(5), 0, 0
    for _ in range(KILLS):
        process, counter = start(cut)
        kill(process, counter, cut, draw)
        batches += counter.value
        torn += any((cut / "ck").glob(".*.tmp"))
    assert torn > 0  # some kills hit a write
    process, counter = start(cut)
    state, final_arrays = finish(process, cut)
    assert batches + counter.value > needed  # some batches were lost
    assert state == expected
    assert_equal_arrays(final_arrays, arrays)
    snapshots = {f"step-{step}.npz" for step in state["average"]["steps"]}
    files = {path.name for path in (cut / "ck").iterdir()}
    assert {"last.npz", "previous.npz", "best.npz", *snapshots} <= files
