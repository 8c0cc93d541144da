"""Several devices or workers train as one device does with the same batches."""

import functools
import json
import socket

import keras
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from regard.components.trainer.checkpoint import Checkpoints
from regard.components.trainer.distributed import (
    DistributedTrainStep,
    StrategyGroup,
    local_device_group,
)
from regard.components.trainer.optimizer import compile_model
from regard.components.trainer.training_loop import fit
from tests.components.trainer.distributed_training import (
    DEVICE_COUNT,
    split_batches,
    start_process,
    train,
    wait_for,
    write_splits,
)
from tests.components.trainer.tiny_training import BagModel, assert_equal_arrays, training_config

ALL_OPTIONS = {
    "gradient_accumulation_steps": 2,
    "clip_norm": 0.05,
    "weight_decay": 0.1,
    "checkpoint_averaging": {"checkpoints": 2, "of": "best"},
    "schedule": {"type": "exponential", "start_step": 3, "decay_steps": 4, "warmup_steps": 3},
    "early_stopping": {"patience": 99, "min_delta": 0.01, "metric": "bleu"},
}
STEPS = {"evaluate_every": 4, "max_epochs": 2}
WITH_OPTIONS = {
    "all_options": {"changes": {**STEPS, **ALL_OPTIONS, "max_minutes": 10}, "with_metric": True},
}
TRAININGS = {"plain": {"changes": STEPS}, **WITH_OPTIONS}
DETERMINISTIC = {
    "changes": {**STEPS, **ALL_OPTIONS, "deterministic": True},
    "dropout": 0.4,
    "with_metric": True,
}
SLOW_TRAININGS = {
    "bfloat16": {"changes": {**STEPS, "precision": "mixed_bfloat16"}},
    "float16": {"changes": {**STEPS, "precision": "mixed_float16"}},
    "xla": {"changes": {"max_steps": 3, "evaluate_every": 1, "jit_compile": True}},
    "uninterrupted": DETERMINISTIC,
    "killed": {
        **DETERMINISTIC,
        "killed_at": 9,
        "changes": {**DETERMINISTIC["changes"], "checkpoint_seconds": 0},
    },
}
# Rounding: sums have another order, and in mixed formats other parts.
TOLERANCES = {"bfloat16": 0.02, "float16": 0.005}


def test_one_device_needs_no_group():
    assert local_device_group("one") is None
    assert local_device_group("all") is None  # a machine without several GPUs


def test_broadcast_is_exact():
    """Here by a chief with a second worker that contributes zeros."""
    group = StrategyGroup(tf.distribute.MirroredStrategy(["CPU:0"]), 0, 2)
    values = [
        np.array([[0.1, -3e38], [np.nan, 1.0]], np.float32),
        np.array(2**53 - 1),
        np.array([1, 2**32 - 1], np.uint32),
        np.zeros([0, 3], np.float32),
        np.array(0.1),
        np.array([0.1, 3e38], ml_dtypes.bfloat16),
        np.array([0.1, 6e4], np.float16),
    ]
    for value in values:
        result = group.broadcast(value)
        assert result.dtype == value.dtype
        np.testing.assert_array_equal(result, value)
    assert group.broadcast_object(lambda: {"a": [0.1, "ü"]}) == {"a": [0.1, "ü"]}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_splits(folder)
    return folder


def tf_configs(count):
    """The TF_CONFIG of each of ``count`` workers on this machine."""
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
def two_devices(data, tmp_path_factory):
    """The results of two devices of one process."""
    folder = tmp_path_factory.mktemp("devices")
    wait_for(start_process(folder, data, TRAININGS, **{DEVICE_COUNT: "2"}))
    return folder


@pytest.fixture(scope="module")
def two_devices_slow(data, tmp_path_factory):
    """The same for trainings that take longer."""
    folder = tmp_path_factory.mktemp("slow")
    wait_for(start_process(folder, data, SLOW_TRAININGS, **{DEVICE_COUNT: "2"}))
    return folder


@pytest.fixture(scope="module")
def two_workers(data, tmp_path_factory):
    """The folders of two worker processes; only the chief's is to have results."""
    folders = [tmp_path_factory.mktemp(f"worker-{i}") for i in range(2)]
    processes = [
        start_process(folder, data, WITH_OPTIONS, TF_CONFIG=config)
        for folder, config in zip(folders, tf_configs(2), strict=True)
    ]
    wait_for(*processes)
    return folders


@pytest.fixture(scope="module")
def one_device(data, tmp_path_factory):
    """The final train state of the same training on one device, by name."""

    @functools.cache
    def run(name):
        folder = tmp_path_factory.mktemp("single")
        arguments = {**TRAININGS, **SLOW_TRAININGS}[name]
        return train(folder, data, None, **arguments)[1]

    return run


def learning_curve(state):
    names = ("step", "learning_rate", "train_loss", "loss")
    return np.array([[entry[name] for name in names] for entry in state["history"]])


def assert_same_training(state, folder, name):
    other = json.loads((folder / name / "state.json").read_text())
    tolerance = TOLERANCES.get(name, 1e-5)
    assert len(state.history) >= 3
    np.testing.assert_allclose(
        learning_curve(other), learning_curve(vars(state)), rtol=0, atol=tolerance
    )
    assert other["tokens"] == state.tokens
    assert other["best_step"] == state.best_step or tolerance > 1e-5
    assert other["stop_reason"] == state.stop_reason


@pytest.mark.parametrize("name", TRAININGS)
def test_two_devices_equal_one(two_devices, one_device, name):
    assert_same_training(one_device(name), two_devices, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bfloat16", "float16", "xla"])
def test_two_devices_in_mixed_precision_and_with_xla(two_devices_slow, one_device, name):
    assert_same_training(one_device(name), two_devices_slow, name)


@pytest.mark.slow
def test_a_killed_training_of_two_devices_resumes_bit_for_bit(two_devices_slow):
    """With dropout: each device restores its own random numbers."""
    weights = [np.load(two_devices_slow / name / "weights.npz") for name in SLOW_TRAININGS][-2:]
    assert_equal_arrays(*([file[name] for name in file.files] for file in weights))


@pytest.mark.slow
def test_two_workers_equal_one_device(two_workers, one_device):
    assert_same_training(one_device("all_options"), two_workers[0], "all_options")


def test_only_the_chief_writes(two_workers):
    chief, other = ({p.name for p in folder.rglob("*") if p.is_file()} for folder in two_workers)
    assert {"last.npz", "best.npz", "state.json"} <= chief
    assert not other


@keras.saving.register_keras_serializable("tests")
class MovingMeanModel(BagModel):
    """Has a moving mean that every batch updates, and a frozen weight."""

    def build(self, shape=None):
        options = {"shape": (7,), "trainable": False}
        self.frozen = self.add_weight(name="frozen", initializer="random_normal", **options)
        self.mean = self.add_weight(name="mean", initializer="zeros", **options)
        super().build(shape)

    def call(self, inputs, training=False):
        if training:
            rows = ops.cast(ops.shape(inputs["source"])[0], "float32")
            self.mean.assign(0.9 * self.mean + 0.1 * rows)
        return super().call(inputs, training=training)


def test_moving_means_change_and_frozen_weights_do_not(data, tmp_path):
    training = training_config(max_epochs=1)
    means = []
    for group in (None, StrategyGroup(tf.distribute.MirroredStrategy(["CPU:0"]))):
        keras.utils.set_random_seed(1)
        model = MovingMeanModel(0.0)
        model.build()
        compile_model(model, training)
        frozen = model.frozen.numpy()
        batches, evaluation = split_batches(data, "train", group), split_batches(data, "eval")
        step = DistributedTrainStep(group, model, lambda: None) if group else None
        checkpoints = Checkpoints(tmp_path / str(len(means)))
        log_dir = str(tmp_path / "log")
        fit(model, batches, evaluation, training, checkpoints, log_dir, None, step)
        np.testing.assert_array_equal(model.frozen.numpy(), frozen)
        means.append(model.mean.numpy())
    assert means[0].min() > 1.0
    np.testing.assert_allclose(means[1], means[0], rtol=1e-5)
