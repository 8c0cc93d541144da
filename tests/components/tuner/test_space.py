"""Dimensions: what KerasTuner draws, and what stands in the configuration for it."""

import json
import random

import pytest

from components.tuner.space import Dimension, Space, with_values

RATE = Dimension("training.learning_rate", 1e-4, 1e-2, log=True)
TOKENS = Dimension("training.batch_tokens", 1024, 8192, step=1024, whole=True)
DROPOUT = Dimension("model.dropout", 0.0, 0.5)
CLIP = Dimension("training.clip_norm", choices=[None, 1.0, 5])
SPACE = Space((RATE, TOKENS, DROPOUT, CLIP))


def draw(space, times=200):
    """Values as an oracle at random draws them."""
    made = space.hyperparameters()
    numbers = random.Random(3)
    for _ in range(times):
        drawn = {hp.name: hp.prob_to_value(numbers.random()) for hp in made.space}
        yield space.rounded(drawn)


def test_values_are_in_their_ranges():
    rows = [SPACE.values(drawn) for drawn in draw(SPACE)]
    rates = [row["training.learning_rate"] for row in rows]
    assert min(rates) >= 1e-4
    assert max(rates) <= 1e-2
    # Evenly by the logarithm: half of them below the geometric mean.
    assert 70 < sum(rate < 1e-3 for rate in rates) < 130
    assert all(float(f"{rate:.4g}") == rate for rate in rates)
    assert {row["training.batch_tokens"] for row in rows} == set(range(1024, 8193, 1024))
    assert all(type(row["training.batch_tokens"]) is int for row in rows)
    assert {row["training.clip_norm"] for row in rows} == {None, 1.0, 5}


def test_rounding_stays_in_the_range():
    rate = Dimension("x", 0.00012346, 0.012344, log=True)
    assert rate.rounded(0.000123461) == 0.0001235
    assert rate.rounded(0.0123438) == 0.01234
    rate = Dimension("x", 0.00012344, 0.012346, log=True)
    assert rate.rounded(0.000123441) == rate.low  # 0.0001234 is outside
    assert rate.rounded(0.0123459) == rate.high  # 0.01235 is outside


@pytest.mark.parametrize(
    ("low", "high", "log"),
    [
        (0.999, 0.9999, False),
        (0.9999, 0.99999, False),
        (0.9, 0.999, False),
        (0.999, 0.9999, True),
        (0.00010001, 0.00010002, True),
        (1.0, 1.0 + 1e-15, True),
        (-1e308, 1e308, False),
        (1e-320, 1e308, True),
    ],
)
def test_a_range_keeps_its_values_where_it_is_narrow_or_very_wide(low, high, log):
    dimension = Dimension("training.beta_2", low, high, log=log)
    drawn = [low * (1 - n / 1000) + high * (n / 1000) for n in range(1001)]
    found = {dimension.rounded(number) for number in drawn}
    assert len(found) >= min(990, len(set(drawn)))
    assert low <= min(found) <= max(found) <= high


@pytest.mark.parametrize(
    ("step", "drawn", "expected"),
    [(0.05, 0.15000000000000002, 0.15), (0.00005, 0.40015, 0.40015)],
)
def test_steps_are_kept(step, drawn, expected):
    assert Dimension("x", 0.0, 0.5, step).rounded(drawn) == expected


@pytest.mark.parametrize(
    ("choices", "labels"),
    [
        ([1, 2, 3], [1, 2, 3]),
        ([0.5, 0.1], [0.5, 0.1]),
        (["soft", "hard"], ["soft", "hard"]),
        ([True, False], ["true", "false"]),
        ([1, 0.5], ["1", "0.5"]),
        ([None, {"decay": 0.9}], ["null", '{"decay": 0.9}']),
    ],
)
def test_choices_of_any_kind(choices, labels):
    one = Space((Dimension("a", choices=choices),))
    (parameter,) = one.hyperparameters().space
    assert list(parameter.values) == labels
    found = [one.values({"a": label})["a"] for label in labels]
    assert json.dumps(found) == json.dumps(choices)  # 1 is not True


def test_a_choice_is_written_as_it_was_and_trained_as_it_is_read():
    short, whole = {"score": "dot"}, {"score": {"type": "dot"}, "alignment": {"type": "soft"}}
    space = Space((Dimension("model.attention", choices=[short, None], meanings=[whole, None]),))
    (drawn,) = draw(space, times=1)
    label = json.dumps(short)
    assert space.values({"model.attention": label}) == {"model.attention": short}
    assert space.settings({"model.attention": label}) == {"model.attention": whole}
    assert drawn["model.attention"] in (label, "null")


def test_probes_are_the_ends_and_a_value_on_the_way():
    assert RATE.probes() == [1e-4, 1e-2, 1e-3]
    assert TOKENS.probes() == [1024, 8192, 4096]
    assert CLIP.probes() == [None, 1.0, 5]


def test_plain_data_and_back():
    assert Space.of(json.loads(json.dumps(SPACE.plain()))).values(
        {"training.learning_rate": 0.001, "training.batch_tokens": 2048, "model.dropout": 0.1}
        | {"training.clip_norm": "5"}
    ) == {
        "training.learning_rate": 0.001,
        "training.batch_tokens": 2048,
        "model.dropout": 0.1,
        "training.clip_norm": 5,
    }


def test_with_values_touches_nothing_else():
    config = {"model": {"encoder": {"layers": 1, "units": 8}}, "training": {"seed": 5}}
    changed = with_values(config, {"model.encoder.layers": 3, "training.seed": 7})
    assert changed == {"model": {"encoder": {"layers": 3, "units": 8}}, "training": {"seed": 7}}
    assert config["model"]["encoder"]["layers"] == 1
