"""Several devices train as one does with the same batches."""

import functools
import json
import os
import socket
import subprocess
import sys
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from components.trainer import together as together_module
from components.trainer.checkpoint import Checkpoints
from components.trainer.fitting import fit
from components.trainer.optimizer import compile_model
from components.trainer.shares import ByFile, shared
from components.trainer.team import Team
from components.trainer.together import Together
from tests.components.trainer import devices
from tests.components.trainer.test_team import Chief
from tests.components.trainer.tiny import Bag, settings

EVERYTHING = {
    "accumulate": 2,
    "clip_norm": 0.05,
    "ema": {"decay": 0.9},
    "weight_decay": 0.1,
    "average": {"checkpoints": 2, "of": "best"},
    "schedule": {"type": "plateau", "factor": 0.5, "patience": 1, "warmup_steps": 3},
    "early_stop": {"patience": 99, "min_delta": 0.01, "metric": "bleu"},
}
STEPS = {"evaluate_every": 4, "max_epochs": 2}
TRAININGS = {
    "plain": {"changes": STEPS},
    "everything": {"changes": {**STEPS, **EVERYTHING, "max_minutes": 10}, "decoded": True},
    "by_file": {"changes": STEPS, "split": "train"},
}
WHOLE = {
    "changes": {**STEPS, **EVERYTHING, "deterministic": True},
    "dropout": 0.4,
    "decoded": True,
}
SLOW = {
    "bfloat16": {"changes": {**STEPS, "precision": "mixed_bfloat16"}},
    "float16": {"changes": {**STEPS, "precision": "mixed_float16"}},
    "compiled": {"changes": {"max_steps": 3, "evaluate_every": 1, "jit_compile": True}},
    "whole": WHOLE,
    "killed": {
        **WHOLE,
        "killed_at": 9,
        "changes": {**WHOLE["changes"], "checkpoint_seconds": 0},
    },
}
# Rounding alone: the sums are taken in another order, and in the mixed formats of other parts.
FAR = {"bfloat16": 0.02, "float16": 0.005}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    devices.write_rows(folder)
    return folder


def start(folder, data, trainings, environment):
    command = [sys.executable, "-m", "tests.components.trainer.devices"]
    return subprocess.Popen(
        [*command, str(folder), str(data), json.dumps(trainings)],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(*processes):
    for process in processes:
        output, _ = process.communicate(timeout=240)
        assert process.returncode == 0, output


def tf_config(count):
    """The TF_CONFIG of so many workers on this machine."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return [
        json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": i}})
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def mirrored(data, tmp_path_factory):
    """What two devices of one process make."""
    folder = tmp_path_factory.mktemp("mirrored")
    trainings = {name: TRAININGS[name] for name in ("plain", "everything")}
    finish(start(folder, data, trainings, {devices.DEVICES: "2"}))
    return folder


@pytest.fixture(scope="module")
def slow(data, tmp_path_factory):
    """What two devices of one process make of what takes longer."""
    folder = tmp_path_factory.mktemp("slow")
    finish(start(folder, data, SLOW, {devices.DEVICES: "2"}))
    return folder


@pytest.fixture(scope="module")
def workers(data, tmp_path_factory):
    """What two processes make; each has a folder, and the second one's shall stay empty."""
    folders = [tmp_path_factory.mktemp(f"worker-{i}") for i in range(2)]
    started = [
        start(folder, data, TRAININGS, {"TF_CONFIG": config})
        for folder, config in zip(folders, tf_config(2), strict=True)
    ]
    finish(*started)
    return folders


@pytest.fixture(scope="module")
def alone(data, tmp_path_factory):
    """The same trainings on one device, by name."""

    @functools.cache
    def train(name):
        folder = tmp_path_factory.mktemp("alone")
        arguments = {**TRAININGS, **SLOW}[name]
        shares = Joined(data) if name == "by_file" else None
        return devices.train(folder, data, None, **arguments, shares=shares)[1]

    return train


def curve(position):
    """What the training's evaluations found, in order."""
    names = ("step", "learning_rate", "train_loss", "loss")
    return np.array([[entry[name] for name in names] for entry in position["history"]])


def same(position, folder, name):
    found = json.loads((folder / name / "position.json").read_text())
    far = FAR.get(name, 1e-5)
    assert len(position.history) >= 3
    np.testing.assert_allclose(curve(found), curve(vars(position)), rtol=0, atol=far)
    assert found["tokens"] == position.tokens
    assert found["best_step"] == position.best_step or far > 1e-5
    assert found["finished"] == position.finished


class Joined:
    """The batches of two workers that each read their own file, as one device would have them."""

    files_apart = 1

    def __init__(self, data):
        two = [SimpleNamespace(workers=2, worker=i, devices=1, number=None) for i in range(2)]
        self.shares = [ByFile(devices.batches(data, "train"), one) for one in two]

    def size(self):
        return self.shares[0].size()

    def epoch(self, number, skip=0):
        def join(one, other):
            wide = {
                key: tf.maximum(tf.shape(one[0][key])[1], tf.shape(other[0][key])[1])
                for key in one[0]
            }
            return {
                key: tf.concat(
                    [
                        tf.pad(part[0][key], [[0, 0], [0, wide[key] - tf.shape(part[0][key])[1]]])
                        for part in (one, other)
                    ],
                    axis=0,
                )
                for key in one[0]
            }

        pairs = tf.data.Dataset.zip(tuple(share.epoch(number, skip) for share in self.shares))
        return pairs.map(join).apply(tf.data.experimental.assert_cardinality(self.size() - skip))


@pytest.mark.parametrize("name", ["plain", "everything"])
def test_two_devices_are_as_good_as_one(mirrored, alone, name):
    same(alone(name), mirrored, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bfloat16", "float16", "compiled"])
def test_two_devices_in_other_formats_and_compiled(slow, alone, name):
    same(alone(name), slow, name)


@pytest.mark.slow
def test_a_killed_training_of_two_devices_goes_on_bit_for_bit(slow):
    """Dropout, too: each device has its own random numbers again."""
    whole, killed = (np.load(slow / name / "weights.npz") for name in ("whole", "killed"))
    for name in whole.files:
        np.testing.assert_array_equal(whole[name], killed[name])


@pytest.mark.parametrize("name", ["plain", "everything", "by_file"])
def test_two_workers_are_as_good_as_one(workers, alone, name):
    """By row, and where there are files enough each with files of its own."""
    same(alone(name), workers[0], name)


def test_only_the_chief_writes(workers):
    chief, other = ({p.name for p in folder.rglob("*") if p.is_file()} for folder in workers)
    assert {"last.npz", "best.npz", "position.json"} <= chief
    assert not other


@keras.saving.register_keras_serializable("tests")
class Moving(Bag):
    """Has a weight that is moved by every batch, and one that stays as it is."""

    def build(self, shape=None):
        make = {"shape": (7,), "trainable": False}
        self.frozen = self.add_weight(name="frozen", initializer="random_normal", **make)
        self.moved = self.add_weight(name="moved", initializer="zeros", **make)
        super().build(shape)

    def call(self, inputs, training=False):
        if training:
            rows = ops.cast(ops.shape(inputs["source"])[0], "float32")
            self.moved.assign(0.9 * self.moved + 0.1 * rows)
        return super().call(inputs, training=training)


def test_the_state_is_handed_on_in_pieces(monkeypatch):
    """Of no more numbers than may be at once, or of one variable."""
    monkeypatch.setattr(together_module, "PIECE", 100)
    team = Chief()
    model = Bag(0.0)
    model.build()
    compile_model(model, settings(max_epochs=1))
    state = [*model.variables, *model.optimizer.variables]
    before = [variable.numpy() for variable in state]
    Together(team, model, lambda: None).begin()
    sizes = [variable.size for variable in before]
    assert max(sizes) <= 100 < sum(sizes)
    assert sum(sent.size for sent in team.sent) == sum(sizes)
    assert 1 < len(team.sent) < len(sizes)
    assert max(sent.size for sent in team.sent) <= 100
    for variable, value in zip(state, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


def test_what_is_moved_moves_and_what_is_frozen_stays(data, tmp_path):
    training = settings(max_epochs=1)
    ends = []
    for team in (None, Team(tf.distribute.MirroredStrategy(["CPU:0"]))):
        keras.utils.set_random_seed(1)
        model = Moving(0.0)
        model.build()
        compile_model(model, training)
        rows = devices.batches(data, "train-0")
        together = Together(team, model, lambda: None) if team else None
        first = model.frozen.numpy()
        rows, held_out = shared(rows, team) if team else rows, devices.batches(data, "eval")
        store = Checkpoints(tmp_path / str(len(ends)))
        fit(model, rows, held_out, training, store, str(tmp_path / "log"), None, together)
        np.testing.assert_array_equal(model.frozen.numpy(), first)
        ends.append(model.moved.numpy())
    assert ends[0].min() > 1.0
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-5)
