"""The section ``training``: its choices, and what cannot work together."""

from __future__ import annotations

import typing
from typing import Any

import pydantic
import pytest

from components.errors import UserError
from models.schedules import SCHEDULES, schedule
from models.settings.checks import xla_problems
from pipeline.config import load
from pipeline.config.annotations import models_in, type_of
from pipeline.config.evaluation import Evaluation
from pipeline.config.sections import config_of
from pipeline.config.training import Schedule, Tokenize, Training
from pipeline.config.training_checks import impossible_training

TRANSFORMER = {"encoder": {"type": "transformer"}, "decoder": {"type": "transformer"}}


def problems(training: dict[str, Any], model: dict[str, Any] | None = None) -> list[str]:
    config = config_of("translation").model_validate(
        {
            "name": "one",
            "data": {"train": "a.tsv"},
            "model": model or {},
            "training": training,
        }
    )
    found = [*impossible_training(config), *xla_problems(config)]
    return [f"{'.'.join(map(str, problem.path))}: {problem.message}" for problem in found]


def test_schedules() -> None:
    assert [type_of(model) for model in models_in(Schedule)] == list(SCHEDULES)


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_is_made_from_its_defaults(name: str) -> None:
    training = Training.model_validate({"schedule": {"type": name}, "max_steps": 9})
    settings = training.model_dump(mode="json")["schedule"]
    made = schedule(training.learning_rate, settings, max_steps=training.max_steps)
    assert 0.0 < float(made(0)) <= 1.001 * training.learning_rate


def test_validation_knows_the_tokenizations_of_the_evaluation() -> None:
    assert Evaluation.model_fields["tokenize"].annotation == Tokenize
    assert "zh" in typing.get_args(Tokenize)


@pytest.mark.parametrize(
    ("training", "expected"),
    [
        (
            {"batch_tokens": 199},
            "training.batch_tokens: 199 does not hold one row of max_length: 100",
        ),
        (
            {"max_epochs": None, "early_stop": None},
            "training.max_epochs: training would never end",
        ),
        (
            {"schedule": {"type": "cosine"}},
            "training.schedule.steps: a cosine has to know its end; set steps, or training.max",
        ),
        (
            {"schedule": {"type": "cosine", "steps": 100, "warmup_steps": 100}},
            "training.schedule.warmup_steps: the warm-up would still rise at the end of the "
            "schedule, step 100; use less than 100, or more steps",
        ),
        (
            {"schedule": {"type": "cosine", "steps": 100, "minimum": 0.1}, "learning_rate": 0.01},
            "training.schedule.minimum: 0.1 is more than learning_rate: 0.01; use less",
        ),
        (
            {
                "schedule": {"type": "cosine"},
                "max_steps": 9,
                "warm_start": {"optimizer": True},
            },
            "training.warm_start.optimizer: the next training would go on where this cosine has ",
        ),
        (
            {
                "schedule": {"type": "cosine", "steps": 9},
                "max_steps": 9,
                "warm_start": {"optimizer": True},
            },
            "training.warm_start.optimizer: the next training would go on where this cosine has ",
        ),
        (
            {"schedule": {"type": "plateau", "patience": 3}},
            "training.schedule.patience: early_stop.patience: 3 ends the training before the rate",
        ),
        (
            {"early_stop": {"metric": "perplexity"}},
            "training.early_stop.metric: perplexity is known only of the test split; use loss or ",
        ),
        (
            {"jit_compile": True},
            "training.jit_compile: XLA cannot compile the training of recurrent layers, such as "
            "model.encoder.type: recurrent and model.decoder.type: luong; use false",
        ),
    ],
)
def test_impossible(training: dict[str, Any], expected: str) -> None:
    (found,) = problems(training)
    assert found.startswith(expected)


def test_one_recurrent_side_is_enough() -> None:
    (found,) = problems({"jit_compile": True}, {"encoder": {"type": "transformer"}})
    assert "such as model.decoder.type: luong; use false" in found


@pytest.mark.parametrize(
    "training",
    [
        {"batch_tokens": 200},
        {"max_epochs": None, "max_minutes": 5.0},
        {"schedule": {"type": "cosine"}, "max_steps": 10},
        {"schedule": {"type": "cosine"}, "max_steps": 10, "warm_start": {}},
        {
            "schedule": {"type": "cosine", "steps": 99},
            "max_steps": 10,
            "warm_start": {"optimizer": True},
        },
        {
            "schedule": {"type": "cosine", "minimum": 1e-5},
            "max_steps": 10,
            "warm_start": {"optimizer": True},
        },
        {"schedule": {"type": "plateau", "patience": 3}, "early_stop": None},
        {"schedule": {"type": "plateau", "patience": 2}},
    ],
)
def test_possible(training: dict[str, Any]) -> None:
    assert problems(training) == []
    assert problems({**training, "jit_compile": True}, TRANSFORMER) == []


@pytest.mark.parametrize(
    "training",
    [
        {"average": {"checkpoints": 1}},
        {"average": {"of": "first"}},
        {"ema": {"decay": 1.0}},
        {"accumulate": 0},
        {"evaluate_every": 0},
        {"validation_rows": 0},
        {"early_stop": {"metric": 1}},
        {"schedule": {"type": "plateau", "factor": 1.0}},
        {"beta_2": 1.0},
        {"weight_decay": -0.1},
        {"epsilon": 0.0},
    ],
)
def test_out_of_range(training: dict[str, Any]) -> None:
    with pytest.raises(pydantic.ValidationError):
        Training.model_validate(training)


@pytest.mark.parametrize(
    ("training", "line"),
    [
        (
            "schedule: {type: exponential, warmup_steps: 9000, start_step: 5000}",
            "3: training.schedule.start_step: the rate would fall from step 5000 on, while it "
            "still rises until step 9000; use 9000 or more",
        ),
        (
            "schedule: {type: noam}",
            "3: training.learning_rate: with noam this is only a factor, and the rate would never "
            "be more than 7e-07; use about 1.0",
        ),
        (
            "validation_tokenize: ja-mecab",
            "3: training.validation_tokenize: ja-mecab needs a package that is not there; pip "
            "install 'sacrebleu[ja]'",
        ),
    ],
)
def test_what_would_only_be_found_while_training(tmp_path, training, line):
    path = tmp_path / "x.yaml"
    path.write_text(f"name: x\ndata: {{train: a.tsv}}\ntraining: {{{training}}}\n")
    with pytest.raises(UserError) as caught:
        load(path)
    assert caught.value.message == f"{path}:{line}"
