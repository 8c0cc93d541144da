"""The training loop: limits, early stopping, evaluations, averages, reproducibility."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from regard.components.trainer.checkpoint import Checkpoints
from regard.components.trainer.tensor_batches import epoch_dataset
from regard.components.trainer.training_loop import fit
from regard.core import events
from regard.core.errors import UserError
from tests.components.trainer.tiny_training import (
    assert_equal_arrays,
    batches,
    checkpoint_arrays,
    new_model,
    train,
    training_config,
)
from tests.tolerances import close_to

# A learning rate so high that the last evaluations are not the best.
UNSTABLE = {"evaluate_every": 4, "max_steps": 32, "max_epochs": None, "learning_rate": 0.3}


def evaluation_steps(state):
    return [entry["step"] for entry in state.history]


def test_training_reduces_the_loss_and_counts(tmp_path):
    _, state = train(tmp_path)
    train_batches, _ = batches()
    assert state.step == 3 * train_batches.size
    assert state.stop_reason == "max_epochs: 3"
    assert state.tokens == 3 * int(train_batches.lengths.sum())
    losses = [entry["loss"] for entry in state.history]
    assert losses[-1] < losses[0]
    assert list((tmp_path / "log").iterdir())


@pytest.mark.parametrize(("limit", "expected"), [({"max_steps": 7}, 7), ({"max_minutes": 1e-6}, 1)])
def test_limits_stop_within_an_epoch(tmp_path, limit, expected):
    _, state = train(tmp_path, **limit)
    assert state.step == expected
    assert state.stop_reason.startswith(next(iter(limit)))
    assert len(state.history) == 1


def test_a_training_without_an_update_is_an_error(tmp_path):
    with pytest.raises(UserError, match="before its first step, which takes 3 batches"):
        train(tmp_path, max_minutes=1e-6, gradient_accumulation_steps=3)


def test_early_stopping_keeps_the_best_weights(tmp_path):
    stop = {"patience": 2, "min_delta": 10.0}  # only the first evaluation is that much better
    model, state = train(tmp_path, max_epochs=50, early_stopping=stop)
    assert state.stop_reason == "early stop: 2 evaluations without a better loss"
    losses = [entry["loss"] for entry in state.history]
    assert len(losses) == 3
    assert state.best_score == losses[0] > losses[-1]
    results = model.evaluate(epoch_dataset(batches()[1]), verbose=0, return_dict=True)
    assert results["plain_loss"] == close_to(losses[0])


def test_a_loss_that_is_not_finite_names_remedies(tmp_path):
    model = new_model(training_config())
    model.dense.bias.assign(np.full(12, np.nan))
    checkpoints = Checkpoints(tmp_path / "ck")
    with pytest.raises(FloatingPointError, match="lower learning rate"):
        fit(model, *batches(), training_config(), checkpoints, str(tmp_path / "log"))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "each epoch"),
        ({"evaluate_every": 5, "max_steps": 12}, [5, 10, 12]),
        ({"evaluate_every": 4, "max_steps": 8}, [4, 8]),
        ({"evaluate_every": 100, "max_steps": 3}, [3]),
        ({"evaluate_every": 2, "max_steps": 5, "gradient_accumulation_steps": 3}, [2, 4, 5]),
    ],
)
def test_steps_of_evaluations(tmp_path, changes, expected):
    _, state = train(tmp_path, **changes)
    if expected == "each epoch":
        size = batches()[0].size
        expected = [size, 2 * size, 3 * size]
    assert evaluation_steps(state) == expected
    assert state.step == expected[-1]
    assert state.batches == state.step * changes.get("gradient_accumulation_steps", 1)


def test_evaluations_do_not_change_the_training(tmp_path):
    _, state = train(tmp_path / "epochs")
    _, evaluated_often = train(tmp_path / "steps", evaluate_every=3)
    assert len(evaluated_often.history) > 2 * len(state.history)
    assert state.tokens == evaluated_often.tokens == 3 * int(batches()[0].lengths.sum())
    arrays = (checkpoint_arrays(tmp_path / name / "ck/last.npz") for name in ("epochs", "steps"))
    assert_equal_arrays(*arrays)


@pytest.mark.parametrize("evaluate_every", [None, 5])
def test_an_evaluation_is_reported_in_the_epoch_of_its_last_batch(
    tmp_path, monkeypatch, evaluate_every
):
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv(events.VARIABLE, str(log))
    _, state = train(tmp_path, evaluate_every=evaluate_every)
    size = batches()[0].size
    reported = [event["text"] for event, _ in events.read(log, 0) if "evaluating" in event["text"]]
    assert reported == [
        f"epoch {math.ceil(step / size)} · step {step} · evaluating"
        for step in evaluation_steps(state)
    ]


def test_history_entries_have_the_values_of_a_learning_curve(tmp_path):
    _, state = train(tmp_path, evaluate_every=5, max_steps=10)
    json.dumps(state.history)
    for entry in state.history:
        assert entry["perplexity"] == pytest.approx(np.exp(entry["loss"]))
        assert entry["learning_rate"] == pytest.approx(0.01)
        assert entry["tokens_per_second"] > 0
        assert entry["train_loss"] > 0
    assert "bleu" not in state.history[0]


class RecordingCheckpoints(Checkpoints):
    """Records the weights of all snapshots by step."""

    weights: dict = {}

    def save_snapshot(self, model, state):
        super().save_snapshot(model, state)
        self.weights[state.step] = [np.array(w) for w in model.weights]


@pytest.mark.parametrize("of", ["last", "best"])
def test_checkpoint_averaging(tmp_path, of):
    RecordingCheckpoints.weights = {}
    options = {**UNSTABLE, "checkpoint_averaging": {"checkpoints": 3, "of": of}}
    model, state = train(tmp_path, RecordingCheckpoints, **options)
    order = sorted(state.history, key=lambda e: e["loss" if of == "best" else "step"])
    chosen = order[:3] if of == "best" else order[-3:]
    steps = sorted(entry["step"] for entry in chosen)
    assert state.average["steps"] == steps
    assert (steps == [24, 28, 32]) == (of == "last")
    listed = set()  # by the last checkpoint and by the one before it
    for name in ("last", "previous"):
        with np.load(tmp_path / "ck" / f"{name}.npz") as file:
            listed |= {step for step, _ in json.loads(str(file["state"]))["snapshots"]}
    assert listed >= set(steps)
    assert {p.name for p in (tmp_path / "ck").glob("step-*")} == {f"step-{s}.npz" for s in listed}
    for i, weight in enumerate(model.weights):
        weights = [RecordingCheckpoints.weights[step][i].astype(np.float64) for step in steps]
        np.testing.assert_allclose(np.array(weight), np.mean(weights, axis=0), rtol=1e-6, atol=1e-7)
    results = model.evaluate(epoch_dataset(batches()[1]), verbose=0, return_dict=True)
    assert state.average["loss"] == close_to(results["plain_loss"])
    # Loaded again, as after a change of the search alone.
    weights = model.get_weights()
    again, _ = train(tmp_path, **options)
    assert_equal_arrays(again.get_weights(), weights)


def test_checkpoint_averaging_if_the_metric_is_always_undefined(tmp_path):
    """As a correlation is while all outputs are equal."""
    _, state = train(
        tmp_path,
        compute_metrics=lambda model: {"pearson": float("nan")},
        max_epochs=2,
        early_stopping={"metric": "pearson"},
        checkpoint_averaging={"checkpoints": 2},
    )
    assert state.best_step == 0
    assert state.average["steps"] == evaluation_steps(state)


def test_early_stopping_by_a_metric(tmp_path):
    scores = iter([10.0, 30.0, 30.4, 20.0])
    model, state = train(
        tmp_path,
        compute_metrics=lambda model: {"bleu": next(scores)},
        max_epochs=50,
        early_stopping={"patience": 2, "min_delta": 0.5, "metric": "bleu"},
    )
    assert [entry["bleu"] for entry in state.history] == [10.0, 30.0, 30.4, 20.0]
    assert state.stop_reason == "early stop: 2 evaluations without a better bleu"
    assert state.best_score == -30.0  # 30.4 is not better by 0.5
    with np.load(tmp_path / "ck" / "best.npz") as best:
        assert json.loads(str(best["state"]))["step"] == state.history[1]["step"]
    assert_equal_arrays(checkpoint_arrays(tmp_path / "ck/best.npz"), model.get_weights())


@pytest.mark.slow
def test_xla_computes_the_same_losses(tmp_path):
    _, plain = train(tmp_path / "plain", max_steps=6)
    _, compiled = train(tmp_path / "compiled", max_steps=6, jit_compile=True)
    losses = [[entry["loss"] for entry in state.history] for state in (plain, compiled)]
    np.testing.assert_allclose(*losses, rtol=1e-3)  # XLA draws other numbers for dropout


DETERMINISTIC_TRAININGS = """
import sys
from pathlib import Path
import tensorflow as tf
from regard.components.trainer.training_loop import set_seed
from tests.components.trainer import tiny_training

training = tiny_training.training_config(deterministic=True)
weights = []
for name in ("one", "two"):
    set_seed(training)
    tiny_training.clear_models()
    model, _ = tiny_training.train(Path(sys.argv[1]) / name, deterministic=True)
    weights.append(model.get_weights())
tiny_training.assert_equal_arrays(*weights)
try:
    tf.random.Generator.from_non_deterministic_state()
except RuntimeError as error:
    assert "determinism" in str(error)
else:
    raise AssertionError("nondeterministic operations are allowed")
"""


@pytest.mark.slow
def test_deterministic_trainings_are_equal_with_several_threads(tmp_path):
    # In a process of its own, since determinism cannot be disabled again.
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root), "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment.pop("TF_NUM_INTRAOP_THREADS", None)
    process = subprocess.run(
        [sys.executable, "-c", DETERMINISTIC_TRAININGS, str(tmp_path)],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert process.returncode == 0, process.stderr[-2000:]
