"""Continuing the optimizer state of an earlier training."""

import numpy as np
import pytest

from regard.components.trainer.optimizer_state import (
    adam_moments,
    check_optimizer_state,
    restore_optimizer_state,
)
from regard.core.errors import UserError
from tests.components.trainer.tiny_training import new_model, training_config

UPDATES = 60


def optimizer_of(**training):
    return new_model(training_config(**training)).optimizer


def random_moments(optimizer):
    random = np.random.default_rng(3)
    return [random.random(tuple(one.shape), dtype=np.float32) for one in adam_moments(optimizer)]


@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_moments_and_position_are_restored(precision):
    optimizer = optimizer_of(gradient_accumulation_steps=2, precision=precision)
    values = random_moments(optimizer)
    restore_optimizer_state(optimizer, UPDATES, values)
    for variable, value in zip(adam_moments(optimizer), values, strict=True):
        np.testing.assert_array_equal(np.asarray(variable), value)
    assert int(optimizer.iterations) == UPDATES
    assert hasattr(optimizer, "inner_optimizer") == (precision == "mixed_float16")


def test_other_trainable_weights_are_refused():
    optimizer = optimizer_of()
    values = random_moments(optimizer)
    for wrong in (values[:3], [*values[:-1], values[-1][..., :-1]]):
        with pytest.raises(UserError, match="other trainable weights") as error:
            check_optimizer_state(optimizer, UPDATES, wrong, "tiny@1")
        assert error.value.where == "training.warm_start.optimizer"


def test_a_schedule_that_has_ended_is_refused():
    schedule = {"type": "cosine", "steps": 60, "min_learning_rate": 0.0}
    optimizer = optimizer_of(schedule=schedule, gradient_accumulation_steps=2)
    message = "ended after the 60 steps of tiny@1: the learning rate would be 0"
    with pytest.raises(UserError, match=message):
        check_optimizer_state(optimizer, UPDATES, random_moments(optimizer), "tiny@1")


@pytest.mark.parametrize(
    "schedule",
    [
        {"type": "cosine", "steps": 90},
        {"type": "cosine", "steps": 60, "min_learning_rate": 0.001},
        {"type": "constant", "warmup_steps": 10**8},  # at its very beginning
    ],
)
def test_a_schedule_that_has_not_ended_continues(schedule):
    optimizer = optimizer_of(schedule=schedule)
    check_optimizer_state(optimizer, UPDATES, random_moments(optimizer), "tiny@1")
