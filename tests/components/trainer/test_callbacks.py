"""The clock that ends a training, and a loss that is not finite."""

import math
from types import SimpleNamespace

import keras
import pytest

from regard.components.trainer.callbacks import TrainingProgress
from regard.components.trainer.checkpoint import TrainState
from regard.components.trainer.summaries import SummaryWriter
from tests.components.trainer.tiny_training import BagModel, training_config


@pytest.fixture
def make_progress():
    """A training of at most a minute that has trained 100 batches in 20 seconds."""

    def make(group=None):
        state = TrainState(batches=100, seconds=20.0)
        training = training_config(max_minutes=1)
        progress = TrainingProgress(state, training, 999, SummaryWriter(None), group)
        progress.set_model(keras.Model())
        progress._last_report += 1000  # no reports
        return progress

    return make


def test_a_single_worker_checks_its_clock_after_every_batch(make_progress):
    progress = make_progress()
    progress.on_train_batch_end(0)
    assert not progress.limit()
    progress._last_batch -= 40
    progress.on_train_batch_end(1)
    assert progress.limit() == "max_minutes: 1.0"
    assert progress.model.stop_training


def test_several_workers_follow_the_chief_s_clock(make_progress):
    """They synchronize about once a second, all after the same batch."""
    calls, answers = [], [(21.0, 5.4), (22.0, 5.4), (66.0, 5.4)]

    def broadcast(compute):
        calls.append((progress.state.batches, *compute()))
        return answers[len(calls) - 1]

    progress = make_progress(SimpleNamespace(broadcast_object=broadcast))
    progress._last_batch -= 1000  # this worker's clock is far ahead
    for batch in range(11):
        assert not progress.limit()
        progress.on_train_batch_end(batch)
    assert [batches for batches, *_ in calls] == [101, 106, 111]
    assert calls[1][1:] == pytest.approx((21.0, 106 / 21), abs=0.5)
    assert progress.limit() == "max_minutes: 1.0"
    assert progress.model.stop_training


def test_slow_workers_synchronize_after_every_batch(make_progress):
    calls = []

    def broadcast(compute):
        calls.append(compute())
        return 21.0, 0.1

    progress = make_progress(SimpleNamespace(broadcast_object=broadcast))
    for batch in range(3):
        progress.on_train_batch_end(batch)
    assert len(calls) == 3


@pytest.mark.parametrize("is_chief", [True, False])
def test_only_the_chief_raises_if_the_loss_is_not_finite(make_progress, is_chief):
    progress = make_progress(SimpleNamespace(is_chief=is_chief))
    progress.set_model(BagModel())
    progress.model.loss_mean.update_state(float("nan"), 3.0)
    if is_chief:
        with pytest.raises(FloatingPointError, match="The loss is nan at step 0"):
            progress.loss()
    else:
        assert math.isnan(progress.loss())
