"""A training that is killed anywhere ends as if it had not been, bit for bit."""

import json

import numpy as np
import pytest

from components.trainer.checkpoint import Checkpoints
from tests.components.trainer.tiny import stored, train

EVERYTHING = {
    "evaluate_every": 3,
    "accumulate": 2,
    "ema": {"decay": 0.9},
    "average": {"checkpoints": 3, "of": "best"},
    "schedule": {"type": "plateau", "factor": 0.5, "patience": 1, "warmup_steps": 4},
    "early_stop": {"patience": 99, "min_delta": 0.02},
    "weight_decay": 0.1,
    "learning_rate": 0.05,
    "max_epochs": 4,
}


class Killed(Exception):
    pass


def killer(name, number):
    """Checkpoints that die at a call: before the work, so that nothing of it is there."""

    class Killer(Checkpoints):
        calls = 0

    def die(self, *arguments):
        Killer.calls += 1
        if Killer.calls == number:
            raise Killed
        return getattr(Checkpoints, name)(self, *arguments)

    setattr(Killer, name, die)
    return Killer


def plain(position):
    """A position without what depends on the clock."""
    moving = ("seconds", "tokens_per_second", "train_loss")
    history = [
        {name: value for name, value in entry.items() if name not in moving}
        for entry in position.history
    ]
    return {**vars(position), "history": history, "seconds": 0}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The training that nobody kills: its position, the weights it gives, the state it leaves."""
    folder = tmp_path_factory.mktemp("whole")
    model, position = train(folder, **EVERYTHING)
    assert position.rate_scale < 0.5  # it has been cut more than once
    assert len(position.history) > 6
    return position, model.get_weights(), stored(folder / "ck/last.npz")


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("save", 5),  # between two updates
        ("save", 20),
        ("save", 31),
        ("save_best", 2),
        ("save_snapshot", 1),
        ("save_snapshot", 5),
    ],
)
def test_killed_and_resumed(whole, tmp_path, name, number):
    with pytest.raises(Killed):
        train(tmp_path, killer(name, number), **EVERYTHING, checkpoint_seconds=0)
    model, position = train(tmp_path, **EVERYTHING)
    expected, weights, state = whole
    assert plain(position) == plain(expected)
    for one, other in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(stored(tmp_path / "ck/last.npz"), state, strict=True):
        np.testing.assert_array_equal(one, other)
    kept = {f"step-{step}.npz" for step in position.averaged["steps"]}
    names = {path.name for path in (tmp_path / "ck").iterdir()}
    assert names == {"last.npz", "best.npz", *kept}


def test_a_limit_that_was_reached_before_the_kill_holds(tmp_path):
    """Killed after the last step's checkpoint and before its evaluation: no step more."""

    class AtTheEnd(Checkpoints):
        def save(self, model, position):
            super().save(model, position)
            if position.step == 4:
                raise Killed

    options = {"max_steps": 4, "max_epochs": None}
    with pytest.raises(Killed):
        train(tmp_path, AtTheEnd, **options, checkpoint_seconds=0)
    with np.load(tmp_path / "ck/last.npz") as last:
        assert json.loads(str(last["position"]))["history"] == []
    _, position = train(tmp_path, **options)
    assert position.step == position.history[0]["step"] == 4


def test_a_finished_training_only_gives_its_weights(tmp_path):
    first, one = train(tmp_path, **EVERYTHING)
    weights = first.get_weights()
    again, two = train(tmp_path, **EVERYTHING)
    assert plain(two) == plain(one)
    for ours, theirs in zip(again.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_what_a_killed_write_left_is_removed(tmp_path):
    """A kill in the middle of a write leaves a file as large as a checkpoint."""
    folder = tmp_path / "ck"
    folder.mkdir()
    (folder / ".last.npz.0123abcd.tmp").write_bytes(b"PK")
    train(tmp_path, max_epochs=1)
    assert {path.name for path in folder.iterdir()} == {"last.npz", "best.npz"}
