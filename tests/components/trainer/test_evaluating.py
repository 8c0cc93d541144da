"""Evaluations, and which weights come out at the end."""

import json

import numpy as np
import pytest

from components.trainer.checkpoint import Checkpoints
from tests.components.trainer.tiny import data, make, settings, stored, train

# A rate so high that the last evaluations are not the best.
WILD = {"evaluate_every": 4, "max_steps": 32, "max_epochs": None, "learning_rate": 0.3}


def same(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


def steps(position):
    return [entry["step"] for entry in position.history]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "each epoch"),
        ({"evaluate_every": 5, "max_steps": 12, "max_epochs": None}, [5, 10, 12]),
        ({"evaluate_every": 4, "max_steps": 8, "max_epochs": None}, [4, 8]),
        ({"evaluate_every": 100, "max_steps": 3}, [3]),
        ({"evaluate_every": 2, "max_steps": 5, "accumulate": 3, "max_epochs": None}, [2, 4, 5]),
    ],
)
def test_when_it_evaluates(tmp_path, changes, expected):
    _, position = train(tmp_path, **changes)
    if expected == "each epoch":
        size = data()[0].size()
        expected = [size, 2 * size, 3 * size]
    assert steps(position) == expected
    assert position.step == expected[-1]
    assert position.batches == position.step * changes.get("accumulate", 1)


def test_an_evaluation_within_an_epoch_changes_nothing_of_the_training(tmp_path):
    _, one = train(tmp_path / "plain")
    _, two = train(tmp_path / "often", evaluate_every=3)
    assert len(two.history) > 2 * len(one.history)
    assert one.tokens == two.tokens == 3 * int(data()[0].lengths.sum())
    same(stored(tmp_path / "plain/ck/last.npz"), stored(tmp_path / "often/ck/last.npz"))


def test_an_entry_has_what_a_learning_curve_needs(tmp_path):
    _, position = train(tmp_path, evaluate_every=5, max_steps=10)
    json.dumps(position.history)
    for entry in position.history:
        assert entry["perplexity"] == pytest.approx(np.exp(entry["loss"]))
        assert entry["learning_rate"] == pytest.approx(0.01)
        assert entry["tokens_per_second"] > 0
        assert entry["train_loss"] > 0
    assert "bleu" not in position.history[0]


class Keeps(Checkpoints):
    """Remembers all weights that were evaluated."""

    seen: dict = {}

    def save_snapshot(self, model, position):
        super().save_snapshot(model, position)
        self.seen[position.step] = [np.array(w) for w in model.weights]


@pytest.mark.parametrize("of", ["last", "best"])
def test_the_mean_of_the_kept_weights_comes_out(tmp_path, of):
    Keeps.seen = {}
    options = {**WILD, "average": {"checkpoints": 3, "of": of}}
    model, position = train(tmp_path, Keeps, **options)
    order = sorted(position.history, key=lambda e: e["loss" if of == "best" else "step"])
    chosen = order[:3] if of == "best" else order[-3:]
    chosen = sorted(entry["step"] for entry in chosen)
    assert position.averaged["steps"] == chosen
    assert sorted(p.name for p in (tmp_path / "ck").glob("step-*")) == sorted(
        f"step-{step}.npz" for step in chosen
    )
    for i, weight in enumerate(model.weights):
        mean = np.mean([Keeps.seen[step][i].astype(np.float64) for step in chosen], axis=0)
        np.testing.assert_allclose(np.array(weight), mean, rtol=1e-6, atol=1e-7)
    results = model.evaluate(data()[1].epoch(), verbose=0, return_dict=True)
    assert position.averaged["loss"] == pytest.approx(results["plain_loss"], abs=1e-6)
    # Read again, as when the search alone has changed: the same weights.
    first = model.get_weights()
    again, _ = train(tmp_path, **options)
    same(again.get_weights(), first)


def test_which_of_the_kept_weights_differ_by_last_and_best(tmp_path):
    found = {}
    for of in ("last", "best"):
        _, position = train(tmp_path / of, **WILD, average={"checkpoints": 3, "of": of})
        found[of] = position.averaged["steps"]
    assert found["last"] == [24, 28, 32]
    assert found["best"] != found["last"]


def bleus(values):
    """A decoder that gives these values one after the other."""
    rest = iter(values)
    return lambda model: {"bleu": next(rest)}


def test_early_stop_by_bleu(tmp_path):
    model, position = train(
        tmp_path,
        decode=bleus([10.0, 30.0, 30.4, 20.0]),
        max_epochs=50,
        early_stop={"patience": 2, "min_delta": 0.5, "metric": "bleu"},
    )
    assert [entry["bleu"] for entry in position.history] == [10.0, 30.0, 30.4, 20.0]
    assert position.finished == "early stop: 2 evaluations without a better bleu"
    assert position.best == -30.0  # 30.4 is not better by 0.5
    with np.load(tmp_path / "ck" / "best.npz") as best:
        assert json.loads(str(best["position"]))["step"] == position.history[1]["step"]
    same(stored(tmp_path / "ck/best.npz"), model.get_weights())


def test_early_stop_within_an_epoch(tmp_path):
    _, position = train(
        tmp_path,
        evaluate_every=2,
        max_epochs=50,
        early_stop={"patience": 3, "min_delta": 100.0},
    )
    assert steps(position) == [2, 4, 6, 8]
    assert position.step == 8


@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_plateau_lowers_the_rate_and_stops_at_the_minimum(tmp_path, precision):
    schedule = {"type": "plateau", "factor": 0.1, "patience": 2, "minimum": 0.0005}
    _, position = train(
        tmp_path,
        evaluate_every=2,
        max_steps=18,
        max_epochs=None,
        schedule=schedule,
        early_stop={"patience": 99, "min_delta": 100.0},
        precision=precision,  # in float16 Keras wraps the optimizer
    )
    rates = [entry["learning_rate"] for entry in position.history]
    # The first evaluation is better than none; then two without a better one for each cut.
    expected = [0.01] * 3 + [0.001] * 2 + [0.0005] * 4
    assert rates == pytest.approx(expected)
    assert position.rate_scale == pytest.approx(0.05)


def test_moving_average_is_what_is_evaluated_and_kept(tmp_path):
    decay = 0.5
    options = {"evaluate_every": 1, "max_steps": 4}
    Keeps.seen = {}
    train(tmp_path / "plain", Keeps, **options, average={"checkpoints": 9})
    expected = [w.astype(np.float64) for w in make(settings()).get_weights()]
    averages = {}
    for step in range(1, 5):
        keep = min(decay, (1 + step) / (10 + step))
        expected = [
            keep * old + (1 - keep) * new
            for old, new in zip(expected, Keeps.seen[step], strict=True)
        ]
        averages[step] = expected
    own = Keeps.seen[4]
    train(tmp_path, Keeps, **options, ema={"decay": decay}, average={"checkpoints": 9})
    for step, wanted in averages.items():
        for one, other in zip(Keeps.seen[step], wanted, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)
    # The training itself goes on from its own weights.
    for one in own:
        assert any(
            one.shape == x.shape and (one == x).all() for x in stored(tmp_path / "ck/last.npz")
        )


def test_compiled_by_xla(tmp_path):
    """It learns the same."""
    _, plain = train(tmp_path / "plain", max_steps=6)
    _, fast = train(tmp_path / "fast", max_steps=6, jit_compile=True)
    losses = [[entry["loss"] for entry in position.history] for position in (plain, fast)]
    np.testing.assert_allclose(*losses, rtol=1e-3)  # XLA draws other numbers for dropout
