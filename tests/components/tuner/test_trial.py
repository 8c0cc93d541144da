"""The result of a trial."""

import math

import pytest

from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer.checkpoint import TrainState
from regard.components.tuner.space import replace_values
from regard.components.tuner.trial import score_weights
from regard.core.errors import UserError
from tests.components.tuner import tiny

HISTORY = [
    {"step": 10 * n, "epoch": n, "seconds": 3.0 * n, "loss": loss, "bleu": bleu}
    for n, (loss, bleu) in enumerate([(2.0, 5.0), (1.0, 7.0), (1.5, 9.0)], start=1)
]


def position(**changes):
    fields = {"history": HISTORY, "best_step": 20, "epoch": 3, "seconds": 9.04}
    return TrainState(**{**fields, "stop_reason": "max_epochs: 3", **changes})


def test_result_is_of_the_best_evaluation():
    result = score_weights(position(), "bleu")
    assert (result.score, result.step, result.epochs) == (7.0, 20, 3)
    assert result.metrics == {"loss": 1.0, "bleu": 7.0}
    assert (result.seconds, result.stop_reason) == (9.0, "max_epochs: 3")


def test_result_is_of_the_average_weights_if_exported():
    result = score_weights(position(average={"steps": [10, 20], "loss": 0.8, "bleu": 8.0}), "loss")
    assert result.score == 0.8
    assert result.metrics == {"loss": 0.8, "bleu": 8.0}


@pytest.mark.parametrize(
    "changes",
    [{"best_step": 0}, {"history": [{**HISTORY[1], "bleu": math.nan}]}, {"history": []}],
)
def test_no_finite_score_is_an_error(changes):
    with pytest.raises(UserError, match="No evaluation gave a finite value of bleu"):
        score_weights(position(**changes), "bleu")


def test_choice_of_a_section_gets_its_defaults():
    values = {"training.schedule": {"type": "inverse_sqrt"}, "model.encoder.layers": 2}
    config = TrainerConfig.model_validate(replace_values(tiny.config(), values))
    assert config.training.schedule.warmup_steps == 4000
    assert config.model.encoder.layers == 2
