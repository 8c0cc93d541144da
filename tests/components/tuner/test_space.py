"""Dimensions of a search space: sampling, rounding and configuration values."""

import json
import random

import pytest
from pydantic import TypeAdapter

from regard.components.tuner.space import Dimension, SearchSpace, replace_values

RATE = Dimension("training.learning_rate", 1e-4, 1e-2, log=True)
TOKENS = Dimension("training.batch_tokens", 1024, 8192, step=1024, integer=True)
DROPOUT = Dimension("model.dropout", 0.0, 0.5)
CLIP = Dimension("training.clip_norm", choices=[None, 1.0, 5])
SPACE = SearchSpace((RATE, TOKENS, DROPOUT, CLIP))


def sample(space, times=200):
    """Yield values as a random oracle samples them."""
    hyperparameters = space.hyperparameters()
    numbers = random.Random(3)
    for _ in range(times):
        samples = {hp.name: hp.prob_to_value(numbers.random()) for hp in hyperparameters.space}
        yield space.round(samples)


def test_samples_are_within_their_ranges():
    rows = [SPACE.config_values(samples) for samples in sample(SPACE)]
    rates = [row["training.learning_rate"] for row in rows]
    assert min(rates) >= 1e-4
    assert max(rates) <= 1e-2
    # Evenly by the logarithm: half of them below the geometric mean.
    assert 70 < sum(rate < 1e-3 for rate in rates) < 130
    assert all(float(f"{rate:.4g}") == rate for rate in rates)
    assert {row["training.batch_tokens"] for row in rows} == set(range(1024, 8193, 1024))
    assert all(type(row["training.batch_tokens"]) is int for row in rows)
    assert {row["training.clip_norm"] for row in rows} == {None, 1.0, 5}


def test_rounding_stays_within_the_range():
    rate = Dimension("x", 0.00012346, 0.012344, log=True)
    assert rate.round(0.000123461) == 0.0001235
    assert rate.round(0.0123438) == 0.01234
    rate = Dimension("x", 0.00012344, 0.012346, log=True)
    assert rate.round(0.000123441) == rate.low  # 0.0001234 is outside
    assert rate.round(0.0123459) == rate.high  # 0.01235 is outside


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
def test_rounding_keeps_distinct_values_in_narrow_and_wide_ranges(low, high, log):
    dimension = Dimension("training.beta_2", low, high, log=log)
    samples = [low * (1 - n / 1000) + high * (n / 1000) for n in range(1001)]
    values = {dimension.round(number) for number in samples}
    assert len(values) >= min(990, len(set(samples)))
    assert low <= min(values) <= max(values) <= high


@pytest.mark.parametrize(
    ("step", "samples", "expected"),
    [(0.05, 0.15000000000000002, 0.15), (0.00005, 0.40015, 0.40015)],
)
def test_rounding_preserves_steps(step, samples, expected):
    assert Dimension("x", 0.0, 0.5, step).round(samples) == expected


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
def test_choices_of_any_type(choices, labels):
    one = SearchSpace((Dimension("a", choices=choices),))
    (parameter,) = one.hyperparameters().space
    assert list(parameter.values) == labels
    values = [one.config_values({"a": label})["a"] for label in labels]
    assert json.dumps(values) == json.dumps(choices)  # 1 is not True


def test_test_values_are_bounds_and_middle():
    assert RATE.test_values() == [1e-4, 1e-2, 1e-3]
    assert TOKENS.test_values() == [1024, 8192, 4096]
    assert CLIP.test_values() == [None, 1.0, 5]


def test_json_round_trip():
    adapter = TypeAdapter(SearchSpace)
    space = adapter.validate_json(adapter.dump_json(SPACE))
    for samples in sample(SPACE, 9):
        assert space.config_values(samples) == SPACE.config_values(samples)


def test_replace_values_changes_nothing_else():
    config = {"model": {"encoder": {"layers": 1, "units": 8}}, "training": {"seed": 5}}
    changed = replace_values(config, {"model.encoder.layers": 3, "training.seed": 7})
    assert changed == {"model": {"encoder": {"layers": 3, "units": 8}}, "training": {"seed": 7}}
    assert config["model"]["encoder"]["layers"] == 1


def test_items_of_lists_are_replaced_by_their_number():
    config = {"model": {"encoder": [{"units": 8}, {"units": 9, "channels": [1, 2]}]}}
    values = {"model.encoder.1.units": 3, "model.encoder.1.channels.0": 5}
    encoder = [{"units": 8}, {"units": 3, "channels": [5, 2]}]
    assert replace_values(config, values) == {"model": {"encoder": encoder}}
    assert replace_values(config, {"model.encoder.0": {}})["model"]["encoder"][0] == {}
    assert config["model"]["encoder"][1] == {"units": 9, "channels": [1, 2]}
