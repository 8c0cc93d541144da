"""Settings that take effect only in a longer training."""

import pytest

from regard.components.trainer.training_length import (
    TrainingLength,
    length_notes,
    unused_settings,
)
from regard.models.settings.training import TrainingConfig


def keys(training, length):
    return [
        text.split(":")[0].removeprefix("training.") for text in unused_settings(training, length)
    ]


def notes(rows=2_000, **section):
    return list(length_notes(TrainingConfig(**section), rows))


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "constant", "exponential"])
def test_a_warmup_longer_than_the_training_names_the_share_of_the_peak(schedule):
    options = {"type": schedule, "warmup_steps": 4000}
    first, *_ = notes(max_steps=30, schedule=options)
    assert first.startswith("training.schedule.warmup_steps: 4,000")
    assert " 30 steps" in first
    assert "0.75%" in first
    assert not any("warmup" in text for text in notes(1_000_000, max_steps=4000, schedule=options))


@pytest.mark.parametrize(("rows", "is_known"), [(2_000, True), (2_000_000, False)])
def test_epochs_give_an_upper_bound(rows, is_known):
    section = {"max_epochs": 2, "schedule": {"type": "inverse_sqrt", "warmup_steps": 8000}}
    texts = notes(rows, **section)
    assert bool(texts) == is_known
    # 2,000 rows are at most 100 batches of 20 rows of 100 tokens, and 50 incomplete ones.
    assert all("at most 300 steps" in one and "3.75%" in one for one in texts)
    assert not notes(2_000, **section | {"batch_tokens": 200, "max_epochs": 8})


def test_gradient_accumulation_has_fewer_steps():
    section = {"max_epochs": 1, "gradient_accumulation_steps": 10}
    training = TrainingConfig(**section, schedule={"type": "constant", "warmup_steps": 100})
    length = TrainingLength.of(training, 500)
    assert length == TrainingLength(50, 1, is_exact=True)
    assert keys(training, length) == ["schedule.warmup_steps"]


@pytest.mark.parametrize(
    "section",
    [
        {"max_epochs": None, "max_minutes": 5.0},
        {"max_steps": 10, "warm_start": {"model": "m", "optimizer": True}},
    ],
)
def test_what_is_not_known_is_no_warning(section):
    schedule = {"type": "inverse_sqrt", "warmup_steps": 4000}
    assert not notes(**section, schedule=schedule)


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({"evaluate_every": 31}, "evaluate_every"),
        ({"schedule": {"type": "exponential", "start_step": 30}}, "schedule.start_step"),
        (
            {"evaluate_every": 10, "checkpoint_averaging": {"checkpoints": 4}},
            "checkpoint_averaging.checkpoints",
        ),
        ({"evaluate_every": 10, "early_stopping": {"patience": 4}}, "early_stopping.patience"),
        ({"max_minutes": 1.0, "checkpoint_seconds": 61}, "checkpoint_seconds"),
    ],
)
def test_intervals_longer_than_the_training(section, key):
    training = TrainingConfig(max_steps=30, **section)
    assert keys(training, TrainingLength.of(training, 100)) == [key]


@pytest.mark.parametrize(
    "section",
    [
        {"evaluate_every": 30},
        {"evaluate_every": 10, "checkpoint_averaging": {"checkpoints": 3}},
        {"evaluate_every": 5, "early_stopping": {"patience": 5}},
        {"max_epochs": 1},
        {"schedule": {"type": "cosine", "warmup_steps": 20}},
        {"max_minutes": 2.0, "checkpoint_seconds": 61},
        {"early_stopping": None},
    ],
)
def test_settings_that_fit_are_no_warning(section):
    training = TrainingConfig(max_steps=30, **section)
    assert keys(training, TrainingLength.of(training, 100)) == []


def test_evaluations_of_epochs():
    training = TrainingConfig(max_epochs=3, checkpoint_averaging={"checkpoints": 5})
    assert keys(training, TrainingLength.of(training, 1000)) == ["checkpoint_averaging.checkpoints"]
    assert notes(2_000_000, max_epochs=3, checkpoint_averaging={"checkpoints": 5})
