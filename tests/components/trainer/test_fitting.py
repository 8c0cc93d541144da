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

from components.trainer.checkpoint import Checkpoints, Position
from components.trainer.data import Batches
from components.trainer.fitting import compile_model, fit
from models import tasks
from tests.components.trainer.records import SPEC, write

TRAINING = {
    "batch_tokens": 160,
    "max_length": 20,
    "max_epochs": 3,
    "max_steps": None,
    "max_minutes": None,
    "learning_rate": 0.01,
    "schedule": {"type": "constant", "warmup_steps": 0},
    "label_smoothing": 0.1,
    "clip_norm": 1.0,
    "early_stop": None,
    "checkpoint_seconds": 60,
    "precision": "float32",
    "jit_compile": False,
    "seed": 5,
}
MODEL = {
    "embedding": 8,
    "dropout": 0.2,
    "encoder": {"type": "recurrent", "units": 8},
    "decoder": {"type": "recurrent", "units": 8, "layers": 2},
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


def train(folder: Path, **changes):
    training = {**TRAINING, **changes}
    model = make(training)
    position = fit(model, *data(folder), training, Checkpoints(folder / "ck"), str(folder / "log"))
    return model, position


def test_it_learns_and_counts(tmp_path):
    _, position = train(tmp_path)
    batches, _ = data(tmp_path)
    assert position.step == 3 * batches.size()
    assert position.finished == "max_epochs: 3"
    assert position.tokens == 3 * int((batches.lengths).sum())
    losses = [entry["loss"] for entry in position.history]
    assert losses[-1] < losses[0]
    assert list((tmp_path / "log").iterdir())


@pytest.mark.parametrize(("limit", "expected"), [({"max_steps": 7}, 7), ({"max_minutes": 1e-6}, 1)])
def test_limits_stop_in_the_middle(tmp_path, limit, expected):
    _, position = train(tmp_path, **limit)
    assert position.step == expected
    assert position.finished.startswith(next(iter(limit)))
    assert len(position.history) == 1


def test_early_stop_keeps_the_best_weights(tmp_path):
    model, position = train(
        tmp_path, learning_rate=0.5, max_epochs=50, early_stop={"patience": 2, "min_delta": 0.0}
    )
    assert "early stop" in position.finished
    losses = [entry["loss"] for entry in position.history]
    assert position.best == min(losses) < losses[-1]
    _, held_out = data(tmp_path)
    results = model.evaluate(held_out.epoch(), verbose=0, return_dict=True)
    assert results["nll"] == pytest.approx(position.best, abs=1e-5)


def test_an_interrupted_training_ends_with_the_same_weights(tmp_path, monkeypatch):
    whole, first, second = tmp_path / "whole", tmp_path / "cut", tmp_path / "cut"
    whole.mkdir()
    first.mkdir()
    expected, end = train(whole)

    class Cut(Exception):
        pass

    class Killed(Checkpoints):
        def save(self, model, position):
            super().save(model, position)
            if position.step == 11:
                raise Cut

    training = {**TRAINING, "checkpoint_seconds": 0}
    with pytest.raises(Cut):
        fit(make(training), *data(first), training, Killed(first / "ck"), str(first / "log"))
    events = tmp_path / "events.jsonl"
    monkeypatch.setenv("REGARD_EVENTS", str(events))
    resumed, position = train(second)
    assert "resumed at step 11" in events.read_text()
    assert position.step == end.step
    for ours, theirs in zip(resumed.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    np.testing.assert_allclose(
        [entry["loss"] for entry in position.history],
        [entry["loss"] for entry in end.history],
        atol=1e-5,
    )


def test_a_loss_that_is_no_number_says_what_to_do(tmp_path):
    model = make(TRAINING)
    model.decoder.logits.bias.assign(np.full(12, np.nan))
    with pytest.raises(FloatingPointError, match="learning rate"):
        fit(model, *data(tmp_path), TRAINING, Checkpoints(tmp_path / "ck"), str(tmp_path / "log"))


def test_kill_minus_nine_loses_no_more_than_a_checkpoint_interval(tmp_path):
    """A real process, really killed; the second one goes on from the last whole checkpoint."""
    program = (
        "import sys; from pathlib import Path; from tests.components.trainer import test_fitting;"
        "test_fitting.train(Path(sys.argv[1]), checkpoint_seconds=0, max_epochs=400)"
    )
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "TF_CPP_MIN_LOG_LEVEL": "3"},
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
        time.sleep(0.5)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with np.load(last) as stored:  # whole, whenever the kill came
        killed = Position(**json.loads(str(stored["position"])))
    batches, _ = data(tmp_path)
    epochs = killed.epoch + 2
    _, position = train(tmp_path, max_epochs=epochs)
    assert killed.step > 0
    assert position.step == epochs * batches.size()
    assert [p.name for p in (tmp_path / "ck").glob("*.tmp")] == []
