"""The results of a training: that of the chief, and that of another worker."""

from types import SimpleNamespace

import pytest

from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer import train as training
from regard.components.trainer.batches import Sharing
from regard.components.trainer.checkpoint import NoCheckpoints, TrainState
from regard.components.trainer.train import TrainingResult, WorkerResult, train
from regard.core.errors import UserError
from tests.components.tuner import tiny


@pytest.fixture
def config(tmp_path):
    values = tiny.config()
    values["training"] |= {"max_steps": 3}
    folders = {"checkpoints": str(tmp_path / "checkpoints"), "checkpoint_key": "key"}
    return TrainerConfig.model_validate({**values, **folders})


def test_the_chief_returns_the_model_and_facts_about_its_training(config, tmp_path):
    result = train(config, tiny.make_source(tmp_path / "data"), str(tmp_path / "log"))
    assert isinstance(result, TrainingResult)
    assert result.state.step == 3
    assert result.state.stop_reason.startswith("max_steps")
    assert result.record["rows"]["train"]["usable"] == 120
    assert result.record["vocabulary_sizes"].keys() == {"source", "target"}
    assert (result.record["pretrained"], result.record["warm_start"]) == ({}, {})
    assert result.record["batch_tokens"] == result.eval_batches.batch_tokens == 200
    assert (tmp_path / "checkpoints" / "key").is_dir()


def test_another_worker_writes_and_evaluates_nothing(config, tmp_path, monkeypatch):
    calls = []

    def fit(*arguments, **options):
        calls.append((arguments, options))
        return TrainState(step=3)

    monkeypatch.setattr(training, "fit", fit)
    monkeypatch.setattr(training, "DistributedTrainStep", lambda group, model, build: "step")
    group = SimpleNamespace(is_chief=False, sharing=Sharing(1, 2, 1))
    result = train(config, tiny.make_source(tmp_path / "data"), str(tmp_path / "log"), group)
    assert result == WorkerResult(TrainState(step=3))
    ((arguments, options),) = calls
    assert options == {"train_step": "step"}
    assert any(isinstance(argument, NoCheckpoints) for argument in arguments)
    assert arguments[1].sharing == group.sharing
    assert not (tmp_path / "checkpoints").exists()


def test_a_split_without_usable_rows_is_refused(config, tmp_path):
    short = config.training.model_copy(update={"max_length": 2})
    with pytest.raises(UserError) as error:
        train(
            config.model_copy(update={"training": short}),
            tiny.make_source(tmp_path / "data"),
            str(tmp_path / "log"),
        )
    assert error.value.where == "training.max_length"
