"""The configuration of the Trainer survives the way through JSON."""

import pickle
import subprocess
import sys

import pytest
from pydantic import ValidationError

from regard.components.settings.data import DataConfig
from regard.components.settings.trainer import RunInputs, TrainerConfig, TrainingData, TrainingJob
from regard.core.yaml_text import from_yaml
from regard.models import tasks
from regard.pipeline.config.config import config_class
from regard.pipeline.config.reference import starter


@pytest.mark.parametrize("task", tasks.TASKS)
def test_sections_of_every_task_are_parsed(task):
    config = config_class(task).model_validate(from_yaml(starter(task, "a")))
    sections = config.model_dump(mode="json")
    names = [name for name in ("task", "model", "training", "search") if name in sections]
    parsed = TrainerConfig.model_validate({name: sections[name] for name in names})
    assert (parsed.model, parsed.training) == (config.model, config.training)
    assert parsed.search == getattr(config, "search", None)
    assert parsed.model_settings == sections["model"]
    job = TrainingJob(
        config=parsed,
        run=RunInputs(start={"model": "a@1", "path": "/a/1", "digest": "d"}, vectors={"x": "y"}),
        data=TrainingData(["train*"], ["eval*"], "graph"),
        run_folder="run",
        export_folder="model",
    )
    assert TrainingJob.model_validate_json(job.model_dump_json()) == job
    assert pickle.loads(pickle.dumps(job)) == job


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"model": {"widht": 3}}, ("model", "widht")),
        ({"trainign": {}}, ("trainign",)),
        ({"checkpoints": "a"}, ("checkpoints",)),  # the run adds it
    ],
)
def test_unknown_settings_are_refused(changes, key):
    with pytest.raises(ValidationError) as caught:
        TrainerConfig.model_validate(
            {"task": "translation", "model": {}, "training": {}, **changes}
        )
    (error,) = caught.value.errors()
    assert error["loc"] == key


def test_unknown_inputs_of_a_run_are_refused():
    with pytest.raises(ValidationError) as caught:
        RunInputs.model_validate({"start": {}, "ensembel": []})
    (error,) = caught.value.errors()
    assert error["loc"] == ("ensembel",)


def test_the_settings_of_a_training_do_not_need_tensorflow():
    """A training in another process may compute with another library."""
    script = "import sys, regard.components.settings.trainer; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_the_trainer_does_not_depend_on_the_files_of_tags():
    tags = {"train": ["de", "fr"], "temperature": 2.0}
    plain = DataConfig.model_validate({"train": ["a.tsv", "b.tsv"], "tags": tags})
    tested = plain.model_copy(update={"tags": plain.tags.model_copy(update={"test": ("de",)})})
    assert plain.for_trainer() == tested.for_trainer()
    assert plain.for_trainer() == {
        "tags": {"names": ["de", "fr"], "temperature": 2.0},
        "protect": None,
    }
    empty = DataConfig.model_validate({"train": "a.tsv"})
    assert empty.for_trainer() == {"tags": None, "protect": None}
