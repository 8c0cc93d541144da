"""A training that is killed and resumed ends as an uninterrupted one, bit for bit."""

import errno
import json
import threading
from pathlib import Path

import numpy as np
import pytest

from regard.components.trainer.batches import Batches
from regard.components.trainer.callbacks import PeriodicCheckpoint
from regard.components.trainer.checkpoint import Checkpoints
from regard.components.trainer.training_loop import fit
from regard.core import events
from regard.core.errors import UserError
from tests.components.trainer.distributed_training import KilledError
from tests.components.trainer.pairs import write_pairs
from tests.components.trainer.tiny_training import (
    assert_equal_arrays,
    checkpoint_arrays,
    train,
)
from tests.components.trainer.warm_start_models import (
    LSTM,
    NETWORK,
    OLD,
    build,
    trainer_config,
)
from tests.marks import slow

OPTIONS = {
    "evaluate_every": 3,
    "gradient_accumulation_steps": 2,
    "checkpoint_averaging": {"checkpoints": 3, "of": "best"},
    "schedule": {"type": "exponential", "start_step": 4, "decay_steps": 4, "warmup_steps": 4},
    "early_stopping": {"patience": 99, "min_delta": 0.02},
    "weight_decay": 0.1,
    "learning_rate": 0.05,
    "max_epochs": 4,
}


def failing_checkpoints(name, number):
    """A class of checkpoints that fail at the given call of a method, before its work."""

    class FailingCheckpoints(Checkpoints):
        calls = 0

    def fail(self, *arguments):
        FailingCheckpoints.calls += 1
        if FailingCheckpoints.calls == number:
            raise KilledError
        return getattr(Checkpoints, name)(self, *arguments)

    setattr(FailingCheckpoints, name, fail)
    return FailingCheckpoints


def without_times(state):
    """The train state as a dictionary, without values that depend on the clock."""
    timed = ("seconds", "tokens_per_second", "train_loss")
    history = [
        {name: value for name, value in entry.items() if name not in timed}
        for entry in state.history
    ]
    return {**vars(state), "history": history, "seconds": 0}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """State, final weights and folder of a training that is not killed."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    model, state = train(folder, **OPTIONS)
    assert len(state.history) > 6
    return state, model.get_weights(), folder


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("save", 5),  # between two updates
        slow("save", 20),
        slow("save", 31),
        ("save_best", 2),
        slow("save_snapshot", 1),
        ("save_snapshot", 5),
    ],
)
def test_a_killed_training_resumes(uninterrupted, tmp_path, monkeypatch, name, number):
    with pytest.raises(KilledError):
        train(tmp_path, failing_checkpoints(name, number), **OPTIONS, checkpoint_seconds=0)
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    model, state = train(tmp_path, **OPTIONS)
    assert "resumed at step" in log.read_text()
    expected, weights, folder = uninterrupted
    assert without_times(state) == without_times(expected)
    assert_equal_arrays(model.get_weights(), weights)
    last = (checkpoint_arrays(path / "ck/last.npz") for path in (tmp_path, folder))
    assert_equal_arrays(*last)
    snapshots = {f"step-{step}.npz" for step in state.average["steps"]}
    names = {path.name for path in (tmp_path / "ck").iterdir()}
    expected_names = {"last.npz", "previous.npz", "best.npz", *snapshots}
    assert expected_names <= names
    extra = names - expected_names  # the snapshots of the previous state
    assert len(extra) <= OPTIONS["checkpoint_averaging"]["checkpoints"]


def test_a_killed_training_of_adapters_resumes(tmp_path, monkeypatch):
    options = {**OPTIONS, "lora": {"rank": 2}}
    model, expected = train(tmp_path / "whole", **options)
    weights = model.get_weights()
    with pytest.raises(KilledError):
        train(tmp_path / "killed", failing_checkpoints("save", 20), **options, checkpoint_seconds=0)
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    model, state = train(tmp_path / "killed", **options)
    assert "resumed at step" in log.read_text()
    assert without_times(state) == without_times(expected)
    assert_equal_arrays(model.get_weights(), weights)
    last = (checkpoint_arrays(tmp_path / one / "ck/last.npz") for one in ("whole", "killed"))
    assert_equal_arrays(*last)


def test_a_killed_training_with_scheduled_sampling_resumes(tmp_path, monkeypatch):
    """The sampled tokens after the kill are those of the uninterrupted training."""
    sampling = {"scheduled_sampling": {"type": "inverse_sigmoid", "k": 2.0}}
    limits = {"max_epochs": 3, "evaluate_every": 2, "batch_tokens": 60, "warm_start": None}
    config = trainer_config({**LSTM, "dropout": 0.2}, **limits, **sampling)
    pairs = [(list(range(4, 6 + n % 9)),) * 2 for n in range(20)]
    batches = Batches([write_pairs(tmp_path / "rows.arrow", pairs)], NETWORK, 60, 20, seed=5)
    model = build(config, OLD)
    initial = [np.array(one) for one in [*model.variables, *model.optimizer.variables]]

    def run(folder, checkpoints, seconds):
        """Train from the initial values, or from those of a checkpoint."""
        variables = [*model.variables, *model.optimizer.variables]
        for variable, value in zip(variables, initial, strict=True):
            variable.assign(value)
        settings = config.training.model_copy(update={"checkpoint_seconds": seconds})
        files = checkpoints(tmp_path / folder)
        state = fit(model, batches, batches, settings, files, str(tmp_path / "log"))
        return without_times(state), model.get_weights()

    expected, weights = run("whole", Checkpoints, 60)
    assert expected["batches"] > 8
    with pytest.raises(KilledError):
        run("killed", failing_checkpoints("save", 6), 0)
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    state, resumed = run("killed", Checkpoints, 60)
    assert "resumed at step" in log.read_text()
    assert state == expected
    assert_equal_arrays(resumed, weights)
    last = (checkpoint_arrays(tmp_path / one / "last.npz") for one in ("whole", "killed"))
    assert_equal_arrays(*last)


def test_training_continues_while_a_checkpoint_is_written(tmp_path, monkeypatch):
    savez, batches, third_batch = np.savez, [], threading.Event()

    def write(file, **arrays):
        if len(batches) < 3:
            assert third_batch.wait(60), "the training waits for its checkpoint"
        savez(file, **arrays)

    def count(self, batch, logs=None):
        batches.append(batch)
        if len(batches) == 1:
            self.checkpoints.save(self.model, self.progress.state)
        elif len(batches) == 3:
            third_batch.set()

    monkeypatch.setattr(np, "savez", write)
    monkeypatch.setattr(PeriodicCheckpoint, "on_train_batch_end", count)
    train(tmp_path, max_epochs=1)
    assert len(batches) > 3


def test_a_full_disk_ends_the_training_which_resumes(uninterrupted, tmp_path, monkeypatch):
    savez, calls = np.savez, []

    def write(file, **arrays):
        calls.append(json.loads(str(arrays["state"]))["batches"])
        if len(calls) == 9:
            file.write(b"PK")
            raise OSError(errno.ENOSPC, "No space left on device")
        savez(file, **arrays)

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", write)
        with pytest.raises(OSError, match="No space left") as caught:
            train(tmp_path, **OPTIONS, checkpoint_seconds=0)
    assert Path(caught.value.filename).parent == tmp_path / "ck"
    assert len(calls) == 9  # the last one: nothing follows the error
    model, state = train(tmp_path, **OPTIONS)
    assert without_times(state) == without_times(uninterrupted[0])
    assert_equal_arrays(model.get_weights(), uninterrupted[1])


def test_a_limit_reached_before_the_kill_still_applies(tmp_path):
    """Killed between the last checkpoint and its evaluation: no further step."""

    class KilledAtTheEnd(Checkpoints):
        def save(self, model, state):
            super().save(model, state)
            if state.step == 4:
                raise KilledError

    options = {"max_steps": 4, "max_epochs": None}
    with pytest.raises(KilledError):
        train(tmp_path, KilledAtTheEnd, **options, checkpoint_seconds=0)
    with np.load(tmp_path / "ck/last.npz") as last:
        assert json.loads(str(last["state"]))["history"] == []
    _, state = train(tmp_path, **options)
    assert state.step == state.history[0]["step"] == 4


def test_a_complete_training_only_loads_its_weights(uninterrupted):
    state, weights, folder = uninterrupted
    again, same_state = train(folder, **OPTIONS)
    assert without_times(same_state) == without_times(state)
    assert_equal_arrays(again.get_weights(), weights)


def test_incomplete_files_are_deleted(tmp_path):
    """A kill during a write leaves a file as large as a checkpoint."""
    folder = tmp_path / "ck"
    folder.mkdir()
    (folder / ".last.npz.0123abcd.regard.tmp").write_bytes(b"PK")
    train(tmp_path, max_epochs=1)
    assert {path.name for path in folder.iterdir()} == {"last.npz", "best.npz"}


@pytest.mark.parametrize("damage", ["cut", "flipped", slow("empty"), slow("text")])
def test_a_damaged_checkpoint_is_replaced_by_the_one_before_it(
    uninterrupted, tmp_path, monkeypatch, damage
):
    with pytest.raises(KilledError):
        train(tmp_path, failing_checkpoints("save", 12), **OPTIONS, checkpoint_seconds=0)
    last, previous = (tmp_path / "ck" / name for name in ("last.npz", "previous.npz"))
    damage_file(last, damage)
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    model, state = train(tmp_path, **OPTIONS)
    assert f"{last} is damaged" in log.read_text()
    assert_equal_arrays(model.get_weights(), uninterrupted[1])
    assert without_times(state) == without_times(uninterrupted[0])
    for path in (last, previous):
        damage_file(path, damage)
    with pytest.raises(UserError) as caught:
        train(tmp_path, **OPTIONS)
    assert str(tmp_path / "ck") in caught.value.remedy


@pytest.mark.parametrize("name", ["best.npz", "step-*.npz"])
def test_other_damaged_files_of_a_training_are_named(tmp_path, name):
    options = {**OPTIONS, "checkpoint_averaging": None} if name == "best.npz" else OPTIONS
    train(tmp_path, **options)
    damaged = [damage_file(path, "flipped") for path in (tmp_path / "ck").glob(name)]
    with pytest.raises(UserError) as caught:
        train(tmp_path, **options)
    assert caught.value.where in damaged


def damage_file(path, kind):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    half = bytes(content[: len(content) // 2])
    contents = {"cut": half, "flipped": content, "empty": b"", "text": b"damaged"}
    path.write_bytes(contents[kind])
    return str(path)
