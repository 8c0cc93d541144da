"""The configuration of the Trainer survives the way through JSON."""

import pytest
from pydantic import ValidationError

from regard.components.settings.data import DataConfig
from regard.components.settings.trainer import TrainerConfig, TrainingData, TrainingJob
from regard.core.yaml_text import from_yaml
from regard.models import tasks
from regard.pipeline.config.config import config_class
from regard.pipeline.config.reference import starter


@pytest.mark.parametrize("task", tasks.TASKS)
def test_sections_of_every_task_are_parsed(task):
    config = config_class(task).model_validate(from_yaml(starter(task, "a")))
    sections = config.model_dump(mode="json")
    names = [name for name in ("task", "model", "training", "search") if name in sections]
    parsed = TrainerConfig.model_validate(
        {**{name: sections[name] for name in names}, "start": {}, "code": "digest"}
    )
    assert (parsed.model, parsed.training) == (config.model, config.training)
    assert parsed.search == getattr(config, "search", None)
    assert parsed.model_settings == sections["model"]
    assert parsed.start is None
    data = TrainingData(["train*"], ["eval*"], "graph")
    job = TrainingJob(config=parsed, data=data, run_folder="run", export_folder="model")
    assert TrainingJob.model_validate_json(job.model_dump_json()) == job


def test_unknown_settings_are_refused():
    with pytest.raises(ValidationError, match="widht"):
        TrainerConfig(task="translation", model={"widht": 3}, training={})


def test_the_trainer_does_not_depend_on_the_files_of_tags():
    tags = {"train": ["de", "fr"], "temperature": 2.0}
    plain = DataConfig.model_validate({"train": ["a.tsv", "b.tsv"], "tags": tags})
    tested = plain.model_copy(update={"tags": plain.tags.model_copy(update={"test": ("de",)})})
    assert plain.for_trainer() == tested.for_trainer()
    assert plain.for_trainer() == {"tags": {"names": ["de", "fr"], "temperature": 2.0}}
    assert DataConfig.model_validate({"train": "a.tsv"}).for_trainer() == {"tags": None}
