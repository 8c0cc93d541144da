"""When the clock ends a training; `test_resuming.py` and `test_together.py` have whole ones."""

import keras
import pytest
import tensorflow as tf

from components.trainer.checkpoint import Position
from components.trainer.pulse import Pulse
from tests.components.trainer.tiny import settings


@pytest.fixture
def pulse():
    """A training that has done 100 batches in 20 seconds, and may take a minute."""

    def make(agreed=None):
        training = settings(max_minutes=1)
        position = Position(batches=100, seconds=20.0)
        made = Pulse(position, training, 999, tf.summary.create_noop_writer(), None, agreed)
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
