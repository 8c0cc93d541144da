"""Training on JAX equals training on TensorFlow, and resumes bit for bit."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from regard.components.trainer import training_inputs
from regard.components.trainer.epoch_plan import COARSE_GROWTH
from regard.components.trainer.jax_training import run_training
from tests.components.trainer.backend_jobs import TRANSFORMER, write_job, write_other, write_start
from tests.components.trainer.backend_training import outcomes, run, start_on_jax
from tests.components.trainer.test_distributed import tf_configs
from tests.components.trainer.tiny_training import assert_equal_arrays, checkpoint_arrays

GRU = {"type": "recurrent", "cell": "gru", "units": 4}
LUONG = {
    "encoder": {"type": "recurrent", "units": 4},
    "decoder": {"type": "luong", "units": 8, "input_feeding": True},
}
FAMILIES = {
    "transformer": ("translation", TRANSFORMER, {}),
    "luong": ("translation", LUONG, {}),
    "gru": (
        "translation",
        {
            "encoder": GRU,
            "decoder": {"type": "luong", "cell": "gru", "units": 8, "input_feeding": False},
        },
        {},
    ),
    "bahdanau": ("translation", {"encoder": GRU, "decoder": {"type": "bahdanau", "units": 8}}, {}),
    "pointer": ("pointer", {"encoder": GRU, "decoder": {"units": 8}}, {}),
    "similarity": ("similarity", {"encoder": {"units": 4}, "hidden_units": 6}, {}),
    "span": ("span", {"encoder": {"units": 4}, "modelling": {"units": 4}}, {}),
}
# Three batches with unequal numbers of tokens make an update.
UPDATES = {"gradient_accumulation_steps": 3, "weight_decay": 0.1, "clip_norm": 0.5}
OPTIONS = {
    "updates": ("translation", TRANSFORMER, UPDATES),
    "lora": ("translation", TRANSFORMER, {"lora": {"rank": 2}}),
    "frozen": ("translation", TRANSFORMER, {"freeze": ["encoder", "decoder/embedding"]}),
    "noise": ("translation", TRANSFORMER, {"noise": {"typing_errors": 0.4, "spaces": 0.4}}),
    "guided": ("translation", TRANSFORMER, {"guided_alignment": {"weight": 0.5, "links": "links"}}),
}
EQUAL = {**FAMILIES, **OPTIONS}
# With a learning rate of 0.01, rounding errors in recurrent models grow a thousandfold.
LONG = {"max_steps": 200, "evaluate_every": 20, "learning_rate": 0.002}
# What samples draws other numbers than TensorFlow, and mixed formats round in other places.
ALONE = {
    "scheduled_sampling": (
        "translation",
        LUONG,
        {"scheduled_sampling": {"type": "inverse_sigmoid", "k": 2.0}},
    ),
    "reinforce": (
        "translation",
        {
            **LUONG,
            "attention": {
                "score": "general",
                "alignment": {"type": "hard", "training": "reinforce"},
            },
        },
        {},
    ),
    "subwords": ("translation", TRANSFORMER, {"subword_sampling": {"alpha": 0.2}}),
    "averaging": ("translation", TRANSFORMER, {"checkpoint_averaging": {"checkpoints": 3}}),
    "automatic": ("translation", TRANSFORMER, {"batch_tokens": "auto"}),
    "bfloat16": ("translation", TRANSFORMER, {"precision": "mixed_bfloat16", **UPDATES}),
    "float16": ("translation", TRANSFORMER, {"precision": "mixed_float16", **UPDATES}),
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def on_jax(request, tmp_path_factory):
    """The folder of all selected trainings, and their outcomes on JAX, from one process."""
    folder = tmp_path_factory.mktemp("trainings")
    items = [item for item in request.session.items if item.path == request.path]
    names = {item.callspec.params["name"] for item in items if hasattr(item, "callspec")}
    selected = sorted(names & {*EQUAL, *ALONE})
    for name in selected:
        task, model, options = {**EQUAL, **ALONE}[name]
        steps = LONG if name in EQUAL else {}
        job = write_job(folder, name, task, model, {**steps, **options})
        write_start(folder, name, job)
        write_other(folder, name, f"{name}-tensorflow")
    return folder, outcomes(start_on_jax(folder, selected))


@pytest.mark.parametrize("name", EQUAL)
def test_losses_equal_those_of_tensorflow(on_jax, monkeypatch, name):
    folder, results = on_jax
    monkeypatch.setattr(training_inputs, "GROWTH", COARSE_GROWTH)  # the same batches
    ours = run(folder, f"{name}-tensorflow")
    assert len(ours["losses"]) == 10
    for kind in ("losses", "train_losses"):
        np.testing.assert_allclose(results[name][kind], ours[kind], rtol=1e-5)
    assert ours["losses"][-1] != ours["losses"][0]


@pytest.mark.parametrize("name", ALONE)
def test_options_train_on_jax(on_jax, name):
    _, results = on_jax
    assert np.isfinite(results[name]["losses"]).all()
    assert results[name]["losses"][-1] < results[name]["losses"][0]


def test_four_devices_equal_one(tmp_path):
    """Each batch is filled up to a multiple of four rows."""
    write_start(tmp_path, "one", write_job(tmp_path, "one", "translation", TRANSFORMER, UPDATES))
    write_other(tmp_path, "one", "all", devices="all")
    flags = "--xla_force_host_platform_device_count=4"
    results = outcomes(start_on_jax(tmp_path, ["one", "all"], XLA_FLAGS=flags))
    assert [results[name]["devices"] for name in ("one", "all")] == [1, 4]
    for kind in ("losses", "train_losses"):
        np.testing.assert_allclose(results["all"][kind], results["one"][kind], rtol=1e-5)


def test_two_workers_with_two_devices_equal_one(tmp_path, monkeypatch):
    """Accumulated batches, weight decay and clipping; the chief evaluates."""
    model, options = TRANSFORMER, {**UPDATES, "backend": "jax", "warm_start": None}
    job = write_job(tmp_path, "one", "translation", model, options)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    expected = run_training(job)
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    folder = tmp_path / "two-checkpoints"
    inputs = job.run.model_copy(update={"checkpoints": str(folder)})
    shared = job.model_copy(
        update={"run": inputs, "config": job.config.with_training(devices="workers")}
    )
    chief, worker = tf_configs(2)
    monkeypatch.setenv("TF_CONFIG", chief)
    command = [sys.executable, "-m", "regard.pipeline.cli", "worker", "--backend", "jax"]
    with subprocess.Popen(command, env={**os.environ, "TF_CONFIG": worker}) as process:
        try:
            trained = run_training(shared)
            assert process.wait(120) == 0
        finally:
            process.kill()
    assert trained.devices == 4
    for kind in ("loss", "train_loss"):
        ours, theirs = (
            [entry[kind] for entry in result.state.history] for result in (trained, expected)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert trained.state.tokens == expected.state.tokens


@pytest.fixture
def interrupted(tmp_path):
    """The folder of a training with dropout, of one in two parts, and of one that is killed."""
    model, options = {**TRANSFORMER, "dropout": 0.2}, {**UPDATES, "checkpoint_seconds": 1}
    write_start(tmp_path, "whole", write_job(tmp_path, "whole", "translation", model, options))
    write_other(tmp_path, "whole", "part")
    write_other(tmp_path, "part", "begun", max_steps=12)
    path = tmp_path / "begun.json"
    path.write_text(path.read_text().replace("begun-", "part-"))  # the same checkpoints
    write_other(tmp_path, "whole", "killed")
    return tmp_path


def last_checkpoint(folder, name):
    return folder / f"{name}-checkpoints" / "key" / "last.npz"


def test_a_training_on_jax_resumes_bit_for_bit(interrupted):
    """After its limit was raised, and after a SIGKILL."""
    process = start_on_jax(interrupted, ["killed"])
    deadline = time.monotonic() + 300
    while not last_checkpoint(interrupted, "killed").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "no checkpoint in five minutes"
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    with np.load(last_checkpoint(interrupted, "killed")) as file:
        assert 0 < json.loads(str(file["state"]))["batches"] < 90
    names = ["whole", "begun", "part", "killed"]
    results = outcomes(start_on_jax(interrupted, names))
    assert results["begun"]["stop_reason"] == "max_steps: 12"
    expected = checkpoint_arrays(last_checkpoint(interrupted, "whole"))
    for name in ("part", "killed"):
        assert_equal_arrays(checkpoint_arrays(last_checkpoint(interrupted, name)), expected)
        weights = [np.load(results[x]["weights"]) for x in (name, "whole")]
        assert_equal_arrays(*([file[key] for key in file.files] for file in weights))
