"""When the clock ends a training; `test_resuming.py` and `test_together.py` have whole ones."""

import math

import keras
import pytest
import tensorflow as tf

from components.trainer.checkpoint import Position
from components.trainer.pulse import Pulse
from tests.components.trainer.tiny import Bag, settings


@pytest.fixture
def pulse():
    """A training that has done 100 batches in 20 seconds, and may take a minute."""

    def make(agreed=None, chief=True):
        training = settings(max_minutes=1)
        position = Position(batches=100, seconds=20.0)
        made = Pulse(position, training, 999, tf.summary.create_noop_writer(), None, agreed, chief)
        made.set_model(keras.Model())
        made._told += 1000  # when it last told of itself, which it does not do here
        return made

    return make


def test_one_worker_looks_at_its_clock_after_every_batch(pulse):
    one = pulse()
    one.on_train_batch_end(0)
    assert not one.limit()
    one._last -= 40
    one.on_train_batch_end(1)
    assert one.limit() == "max_minutes: 1.0"
    assert one.model.stop_training


def test_several_workers_ask_the_chief_about_once_a_second(pulse):
    """And end by its clock alone, all after the same batch."""
    asked, answers = [], [(21.0, 5.4), (22.0, 5.4), (66.0, 5.4)]

    def agreed(numbers):
        asked.append((one.position.batches, *numbers))
        return answers[len(asked) - 1]

    one = pulse(agreed)
    one._last -= 1000  # its own clock is far ahead
    for batch in range(11):
        assert not one.limit()
        one.on_train_batch_end(batch)
    assert [batches for batches, *_ in asked] == [101, 106, 111]
    assert asked[1][1:] == pytest.approx((21.0, 106 / 21), abs=0.5)
    assert one.limit() == "max_minutes: 1.1"
    assert one.model.stop_training


def test_a_pace_below_one_is_asked_for_after_every_batch(pulse):
    asked = []

    def agreed(numbers):
        asked.append(numbers)
        return 21.0, 0.1

    one = pulse(agreed)
    for batch in range(3):
        one.on_train_batch_end(batch)
    assert len(asked) == 3


def test_the_chief_alone_ends_a_training_whose_loss_is_no_number(pulse):
    """The others go on until it has told why."""
    for chief in (True, False):
        one = pulse(chief=chief)
        one.set_model(Bag())
        one.model.plain_loss.update_state(float("nan"), 3.0)
        if chief:
            with pytest.raises(FloatingPointError, match="the loss is nan at step 0"):
                one.loss()
        else:
            assert math.isnan(one.loss())
