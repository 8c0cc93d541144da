"""The section ``training``: its choices, and what cannot work together."""

import typing
from typing import Any

import pydantic
import pytest
import yaml

from regard.components.settings.evaluation import EvaluationConfig
from regard.core.errors import UserError
from regard.models.schedules import SCHEDULES, schedule
from regard.models.settings.annotations import models_in, type_of
from regard.models.settings.base import find_problems
from regard.models.settings.checks import check_xla
from regard.models.settings.training import (
    BleuTokenizer,
    LearningRateScheduleConfig,
    TrainingConfig,
)
from regard.pipeline.config import load
from regard.pipeline.config.config import config_class
from regard.pipeline.config.training_checks import validate_training
from tests.pipeline.config.refusals import compare

TRANSFORMER = "encoder: {type: transformer}, decoder: {type: transformer}"


def problems(training: str, model: str = "") -> list[str]:
    """The problems of two sections in YAML's short form."""
    text = f"{{name: one, data: {{train: a.tsv}}, model: {{{model}}}, training: {{{training}}}}}"
    config = config_class("translation").model_validate(yaml.safe_load(text))
    own = find_problems(config.training, ("training",))
    result = [*own, *validate_training(config), *check_xla(config)]
    return [f"{'.'.join(map(str, problem.path))}: {problem.message}" for problem in result]


def test_schedules() -> None:
    assert [type_of(model) for model in models_in(LearningRateScheduleConfig)] == list(SCHEDULES)


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_is_made_from_its_defaults(name: str) -> None:
    training = TrainingConfig.model_validate({"schedule": {"type": name}, "max_steps": 9})
    settings = training.model_dump(mode="json")["schedule"]
    created = schedule(training.learning_rate, settings, max_steps=training.max_steps)
    assert 0.0 < float(created(0)) <= 1.001 * training.learning_rate


def test_validation_knows_the_tokenizations_of_the_evaluation() -> None:
    assert EvaluationConfig.model_fields["tokenize"].annotation == BleuTokenizer
    assert "zh" in typing.get_args(BleuTokenizer)


IMPOSSIBLE = {
    "guided_alignment: {links: lines}": [
        "training.guided_alignment.links: 'lines' is not a column of data.extra"
    ],
    "guided_alignment: {links: links, layer: 1}": [
        "training.guided_alignment.links: ",
        "training.guided_alignment.layer: only a transformer decoder has layers of heads",
    ],
    "guided_alignment: {links: a, layer: 1}, penalties: {coverage: 1.0}": [
        "training.guided_alignment.links: ",
        "training.guided_alignment.layer: training.penalties need the last layer's mean",
        "training.guided_alignment.layer: only a transformer",
    ],
    "batch_tokens: 199": ["training.batch_tokens: must be at least 200, two sides of max_length"],
    "batch_tokens: auto, devices: workers, deterministic: true": [
        "training.batch_tokens: auto measures a single machine; use a number, or devices: one or ",
        "training.batch_tokens: auto depends on measurements, also in deterministic trainings and",
    ],
    "max_epochs: null, early_stopping: null": ["training.max_epochs: training would never end"],
    "schedule: {type: cosine}": [
        "training.schedule.steps: cosine needs a last step; set steps, or training.max"
    ],
    "schedule: {type: cosine, steps: 100, warmup_steps: 100}": [
        "training.schedule.warmup_steps: must be less than 100, the last step"
    ],
    "schedule: {type: cosine, steps: 100, min_learning_rate: 0.1}, learning_rate: 0.01": [
        "training.schedule.min_learning_rate: must be at most learning_rate: 0.01"
    ],
    "schedule: {type: cosine}, max_steps: 9, warm_start: {optimizer: true}": [
        "training.warm_start.optimizer: the next training would start with a rate of 0"
    ],
    "schedule: {type: cosine, steps: 9}, max_steps: 9, warm_start: {optimizer: true}": [
        "training.warm_start.optimizer: the next training would start with a rate of 0"
    ],
    "early_stopping: {metric: perplexity}": [
        "training.early_stopping.metric: perplexity is computed on the test split only"
    ],
    "ensemble: [a@1], warm_start: {}": [
        "training.warm_start.model: production will be an ensemble; name a version of one model"
    ],
    "lora: {}, warm_start: {optimizer: true}": [
        "training.warm_start.optimizer: the optimizer of training.lora has a state of other weights"
    ],
    "jit_compile: true": [
        "training.jit_compile: XLA cannot compile recurrent layers (model.encoder.type: "
    ],
}


@pytest.mark.parametrize("training", IMPOSSIBLE)
def test_impossible(training: str) -> None:
    compare(problems(training), IMPOSSIBLE[training])


def test_batch_size_that_is_measured() -> None:
    (result,) = problems("batch_tokens: auto, jit_compile: true", TRANSFORMER)
    assert "training.batch_tokens: auto tries many shapes, each of which XLA would" in result
    assert problems("batch_tokens: auto, devices: all, max_length: 5000") == []


def test_one_recurrent_side_is_enough() -> None:
    (result,) = problems("jit_compile: true", "encoder: {type: transformer}")
    assert "(model.decoder.type: luong); use false" in result


@pytest.mark.parametrize(
    "training",
    [
        "batch_tokens: 200",
        "max_epochs: null, max_minutes: 5.0",
        "schedule: {type: cosine}, max_steps: 10",
        "schedule: {type: cosine}, max_steps: 10, warm_start: {}",
        "schedule: {type: cosine, steps: 99}, max_steps: 10, warm_start: {optimizer: true}",
        "schedule: {type: cosine, min_learning_rate: 0.00001}, max_steps: 10, "
        "warm_start: {optimizer: true}",
        "ensemble: [a@1, b@2], warm_start: {model: a@1}",
        "lora: {rank: 4, alpha: 8}, freeze: [encoder, decoder/layer_0], warm_start: {}",
        "freeze: [embedding], warm_start: {optimizer: true}",
    ],
)
def test_possible(training: str) -> None:
    assert problems(training) == []
    assert problems(f"{training}, jit_compile: true", TRANSFORMER) == []


@pytest.mark.parametrize(
    "training",
    [
        {"checkpoint_averaging": {"checkpoints": 1}},
        {"schedule": {"type": "exponential", "rate": 1.1}},
        {"beta_2": 1.0},
        {"lora": {"rank": 0}},
        {"lora": {"dropout": 0.1}},
        {"freeze": ["encoder/*"]},
        {"freeze": [""]},
    ],
)
def test_out_of_range(training: dict[str, Any]) -> None:
    with pytest.raises(pydantic.ValidationError):
        TrainingConfig.model_validate(training)


@pytest.mark.parametrize(
    ("training", "line"),
    [
        (
            "schedule: {type: exponential, warmup_steps: 9000, start_step: 5000}",
            "3: training.schedule.start_step: must be at least warmup_steps: 9000",
        ),
        (
            "validation_tokenize: ja-mecab",
            "3: training.validation_tokenize: ja-mecab needs a package that is not installed; pip "
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
