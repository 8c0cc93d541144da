"""Every schedule against its formula, at every step."""

import math

import keras
import numpy as np
import pytest

from regard.models.schedules import SCHEDULES, schedule

PEAK = 2.0
CASES = {
    "constant": ({"type": "constant", "warmup_steps": 0}, lambda t: PEAK),
    "constant with a warm-up": (
        {"type": "constant", "warmup_steps": 10},
        lambda t: PEAK * min(1, t / 10),
    ),
    "inverse_sqrt": (
        {"type": "inverse_sqrt", "warmup_steps": 100},
        lambda t: PEAK * min(t / 100, (100 / t) ** 0.5),
    ),
    "exponential": (
        {"type": "exponential", "warmup_steps": 0, "start_step": 10, "decay_steps": 5, "rate": 0.5},
        lambda t: PEAK * 0.5 ** (max(0, t - 10) / 5),
    ),
    "exponential with a warm-up": (
        {"type": "exponential", "warmup_steps": 8, "start_step": 10, "decay_steps": 5, "rate": 0.5},
        lambda t: PEAK * min(1, t / 8) * 0.5 ** (max(0, t - 10) / 5),
    ),
    "cosine": (
        {"type": "cosine", "warmup_steps": 20, "steps": 120, "min_learning_rate": 0.5},
        lambda t: (
            PEAK * t / 20
            if t <= 20
            else 0.5 + (PEAK - 0.5) * (1 + math.cos(math.pi * min(1, (t - 20) / 100))) / 2
        ),
    ),
    "cosine to the end of the training": (
        {"type": "cosine", "warmup_steps": 0, "steps": None, "min_learning_rate": 0.0},
        lambda t: PEAK * (1 + math.cos(math.pi * min(1, t / 60))) / 2,
    ),
}


def rate(one, step):
    return float(one(step - 1))  # Keras counts steps from 0


@pytest.mark.parametrize("case", CASES)
def test_rates(case):
    settings, formula = CASES[case]
    one = schedule(PEAK, settings, max_steps=60)
    steps = [*range(1, 31), 60, 100, 119, 120, 121, 400]
    np.testing.assert_allclose([rate(one, t) for t in steps], [formula(t) for t in steps], 1e-5)


@pytest.mark.parametrize("case", CASES)
def test_batches_of_one_step_share_its_rate(case):
    settings, formula = CASES[case]
    one = schedule(PEAK, settings, accumulate=3, max_steps=60)
    result = [float(one(batch)) for batch in range(30)]
    np.testing.assert_allclose(result, [formula(1 + batch // 3) for batch in range(30)], 1e-5)


@pytest.mark.parametrize("case", CASES)
def test_config_round_trip(case):
    one = schedule(0.1, CASES[case][0], accumulate=2, max_steps=60)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(one))
    assert type(again) is type(one)
    assert [float(again(t)) for t in (3, 30, 77)] == [float(one(t)) for t in (3, 30, 77)]


def test_every_schedule_has_a_case():
    assert {settings["type"] for settings, _ in CASES.values()} == set(SCHEDULES)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"type": "inverse"}, "Unknown schedule 'inverse'.*inverse_sqrt"),
        ({"type": "cosine"}, "needs steps"),
    ],
)
def test_what_cannot_be(settings, message):
    with pytest.raises(ValueError, match=message):
        schedule(1.0, settings)
