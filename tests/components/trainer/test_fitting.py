"""Training: limits, early stop, and going on after a kill as if nothing had happened."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pytest

from components import events
from components.trainer.checkpoint import Checkpoints, Position
from components.trainer.data import Batches
from components.trainer.fitting import fit
from components.trainer.optimizer import compile_model
from models import tasks
from tests.components.trainer.records import SPEC, write

TRAINING = {
    "batch_tokens": 160,
    "max_length": 20,
    "max_epochs": 3,
    "max_steps": None,
    "max_minutes": None,
    "learning_rate": 0.01,
    "beta_1": 0.9,
    "beta_2": 0.98,
    "epsilon": 1e-9,
    "weight_decay": 0.0,
    "schedule": {"type": "constant", "warmup_steps": 0},
    "label_smoothing": 0.1,
    "clip_norm": 1.0,
    "accumulate": 1,
    "evaluate_every": None,
    "early_stop": None,
    "validation_rows": None,
    "validation_tokenize": "13a",
    "ema": None,
    "average": None,
    "reinforce": {},
    "checkpoint_seconds": 60,
    "precision": "float32",
    "jit_compile": False,
    "penalties": {},
    "warm_start": None,
    "seed": 5,
    "deterministic": False,
}
MODEL = {
    "embedding": 8,
    "dropout": 0.2,
    "tie_embeddings": "none",
    "pretrained": None,
    "encoder": {"type": "recurrent", "units": 8},
    "decoder": {"type": "luong", "units": 8, "layers": 2},
    "attention": {"score": "general", "alignment": "soft"},
}


def data(folder: Path) -> tuple[Batches, Batches]:
    random = np.random.default_rng(0)
    pairs = [
        (ids, ids[::-1]) for n in range(160) for ids in [list(random.integers(4, 12, 2 + n % 9))]
    ]
    patterns = write(folder / "train.gz", pairs[:120]), write(folder / "eval.gz", pairs[120:])
    task = tasks.get("translation")
    train, held_out = (Batches([p], SPEC, task, 160, 20, seed=5) for p in patterns)
    return train, held_out


def make(training):
    keras.utils.set_random_seed(training["seed"])
    model = tasks.get("translation").build(MODEL, training, {"source": 12, "target": 12})
    compile_model(model, training)
    return model


@pytest.fixture(scope="module")
def traced():
    """One model for all tests, since tracing one takes seconds, with its first state."""
    model = make(TRAINING)
    state = [np.array(v) for v in (*model.variables, *model.optimizer.variables)]
    return model, state


@pytest.fixture
def model(traced):
    """The model as it was new: weights, optimizer, random numbers."""
    model, state = traced
    for variable, value in zip((*model.variables, *model.optimizer.variables), state, strict=True):
        variable.assign(value)
    return model


def train(model, folder: Path, checkpoints: type = Checkpoints, **changes) -> Position:
    training = {**TRAINING, **changes}
    return fit(model, *data(folder), training, checkpoints(folder / "ck"), str(folder / "log"))


def test_it_learns_and_counts(model, tmp_path):
    position = train(model, tmp_path)
    batches, _ = data(tmp_path)
    assert position.step == 3 * batches.size()
    assert position.finished == "max_epochs: 3"
    assert position.tokens == 3 * int((batches.lengths).sum())
    losses = [entry["loss"] for entry in position.history]
    assert losses[-1] < losses[0]
    assert list((tmp_path / "log").iterdir())


@pytest.mark.parametrize(("limit", "expected"), [({"max_steps": 7}, 7), ({"max_minutes": 1e-6}, 1)])
def test_limits_stop_in_the_middle(model, tmp_path, limit, expected):
    position = train(model, tmp_path, **limit)
    assert position.step == expected
    assert position.finished.startswith(next(iter(limit)))
    assert len(position.history) == 1


def test_early_stop_keeps_the_best_weights(model, tmp_path):
    stop = {
        "patience": 2,
        "min_delta": 10.0,
        "metric": "loss",
    }  # only the first evaluation is that much better
    position = train(model, tmp_path, max_epochs=50, early_stop=stop)
    assert position.finished == "early stop: 2 evaluations without a better loss"
    losses = [entry["loss"] for entry in position.history]
    assert len(losses) == 3
    assert position.best == losses[0] > losses[-1]
    _, held_out = data(tmp_path)
    results = model.evaluate(held_out.epoch(), verbose=0, return_dict=True)
    assert results["plain_loss"] == pytest.approx(losses[0], abs=1e-5)


class Killed(Exception):
    pass


class KilledAtStepEleven(Checkpoints):
    def save(self, model, position):
        super().save(model, position)
        if position.step == 11:
            raise Killed


def test_an_interrupted_training_ends_with_the_same_weights(traced, tmp_path, monkeypatch):
    model, state = traced

    def fresh():
        variables = (*model.variables, *model.optimizer.variables)
        for variable, value in zip(variables, state, strict=True):
            variable.assign(value)
        return model

    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    end = train(fresh(), whole)
    expected = model.get_weights()
    with pytest.raises(Killed):
        train(fresh(), cut, KilledAtStepEleven, checkpoint_seconds=0)
    told = tmp_path / "events.jsonl"
    monkeypatch.setenv("REGARD_EVENTS", str(told))
    position = train(fresh(), cut)
    assert "resumed at step 11" in told.read_text()
    assert position.step == end.step
    for ours, theirs in zip(model.get_weights(), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    np.testing.assert_allclose(
        [entry["loss"] for entry in position.history],
        [entry["loss"] for entry in end.history],
        atol=1e-5,
    )


def test_a_loss_that_is_no_number_says_what_to_do(model, tmp_path):
    model.decoder.logits.bias.assign(np.full(12, np.nan))
    with pytest.raises(FloatingPointError, match="learning rate"):
        train(model, tmp_path)


def test_kill_minus_nine_loses_no_more_than_a_checkpoint_interval(model, tmp_path):
    """A real process, really killed; the second one goes on from the last whole checkpoint."""
    program = (
        "import sys; from pathlib import Path; from tests.components.trainer import test_fitting;"
        "test_fitting.train(test_fitting.make(test_fitting.TRAINING), Path(sys.argv[1]),"
        "checkpoint_seconds=0, max_epochs=400)"
    )
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=root,
        env={
            **os.environ,
            "PYTHONPATH": str(root),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "REGARD_EVENTS": str(tmp_path / "events.jsonl"),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    last = tmp_path / "ck" / "last.npz"
    try:
        deadline = time.monotonic() + 120
        while not last.exists():
            assert process.poll() is None, "the training ended by itself"
            assert time.monotonic() < deadline, "no checkpoint in two minutes"
            time.sleep(0.05)
        time.sleep(3)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with np.load(last) as stored:  # whole, whenever the kill came
        killed = Position(**json.loads(str(stored["position"])))
    batches, _ = data(tmp_path)
    epochs = killed.epoch + 2
    position = train(model, tmp_path, max_epochs=epochs)
    told = [event.get("step", 0) for event, _ in events.read(tmp_path / "events.jsonl")]
    assert killed.step >= max(told) - 1 > 0  # a checkpoint every step, after it has been told
    assert position.step == epochs * batches.size()
    assert [p.name for p in (tmp_path / "ck").glob("*.tmp")] == []
