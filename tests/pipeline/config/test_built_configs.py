"""What the configuration accepts can be built: random networks that pass every check."""

import random

import pytest

from regard.components.trainer.optimizer import compile_model
from regard.models import tasks
from regard.models.tasks import TASKS
from regard.models.tasks.search_outputs import create_search
from regard.pipeline.config.config import config_class
from regard.pipeline.config.load import validate_values
from tests.marks import slow_except
from tests.pipeline.config import test_random_configs
from tests.pipeline.config.test_random_configs import draw

SMALL = {"embedding": 8, "width": 8, "units": 8, "layers": 1, "heads": 2, "feed_forward": 8}
COUNT = 8
TRAINING = ("precision", "label_smoothing", "reinforce", "penalties", "weight_decay", "schedule")


def shrink(values, model):
    """Give the sizes of a section that are not set small values; no files are read."""
    for name, value in SMALL.items():
        if name in model.model_fields:
            values.setdefault(name, value)
    values.pop("pretrained", None)
    for name, field in model.model_fields.items():
        if not isinstance(values.get(name), dict):
            continue
        variants = test_random_configs.models_in(field.annotation)
        kind = values[name].get("type", variants[0].model_fields.get("type"))
        for variant in variants:
            if len(variants) == 1 or variant.model_fields["type"].default == kind:
                shrink(values[name], variant)


def draw_config(task, random_):
    """Return a random valid configuration of small sizes."""
    fields = config_class(task).model_fields
    while True:
        values = {"name": "x", "task": task, "data": {"train": "a.jsonl"}}
        values["model"] = draw(fields["model"].annotation, random_) or {}
        training = draw(fields["training"].annotation, random_) or {}
        values["training"] = {key: training[key] for key in TRAINING if key in training}
        if tasks.describe(task).search is not None:
            values["search"] = draw(fields["search"].annotation, random_) or {}
        if tasks.describe(task).text_features:
            values["tokenizer"] = {"vocab_size": 16, "shared": random_.random() < 0.8}
        shrink(values["model"], fields["model"].annotation)
        config, problems = validate_values(values)
        if not problems:
            return config


@pytest.mark.parametrize("task", slow_except(["translation"], TASKS))
def test_accepted_configurations_can_be_built(task, monkeypatch):
    monkeypatch.setattr(test_random_configs, "NUMBERS", (0, 1, 2, 3, 4, 8, 0.0, 0.1, 0.5, 1.0))
    random_, description = random.Random(f"models of {task}"), tasks.describe(task)
    sizes = dict.fromkeys(description.text_features, 16)
    for _ in range(COUNT):
        config = draw_config(task, random_)
        try:
            model = tasks.get_network(task).build(config.model, config.training, sizes)
            compile_model(model, config.training)
            if config.search is not None:
                create_search(config.search)
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}\n{config.model}\n{config.training}")
        assert model.built
