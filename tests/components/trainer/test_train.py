"""The results of a training: that of the chief, and that of another worker."""

from types import SimpleNamespace

import pytest
import tensorflow as tf

from regard.components.settings.trainer import RunInputs, TrainerConfig, TrainingJob
from regard.components.trainer import train as training
from regard.components.trainer.backends.tensorflow import TensorFlowBackend
from regard.components.trainer.batches import Sharing
from regard.components.trainer.checkpoint import NoCheckpoints, TrainState
from regard.components.trainer.train import TrainingResult, WorkerResult, train
from regard.core.errors import UserError
from tests.components.tuner import tiny


@pytest.fixture
def job(tmp_path):
    values = tiny.config()
    values["training"] |= {"max_steps": 3}
    return TrainingJob(
        config=TrainerConfig.model_validate(values),
        run=RunInputs(checkpoints=str(tmp_path / "checkpoints"), checkpoint_key="key"),
        data=tiny.make_source(tmp_path / "data"),
        run_folder=str(tmp_path / "log"),
    )


def test_the_chief_returns_the_model_and_facts_about_its_training(job, tmp_path):
    result = train(job)
    assert isinstance(result, TrainingResult)
    assert result.state.step == 3
    assert result.state.stop_reason.startswith("max_steps")
    assert result.record["rows"]["train"]["usable"] == 120
    assert result.record["vocabulary_sizes"].keys() == {"source", "target"}
    assert (result.record["pretrained"], result.record["warm_start"]) == ({}, {})
    assert result.record["batch_tokens"] == result.eval_batches.batch_tokens == 200
    assert (tmp_path / "checkpoints" / "key").is_dir()


def test_another_worker_writes_and_evaluates_nothing(job, tmp_path, monkeypatch):
    calls = []

    def fit(*arguments):
        calls.append(arguments)
        return TrainState(step=3)

    monkeypatch.setattr(training, "fit", fit)
    monkeypatch.setattr(
        TensorFlowBackend, "shared_step", lambda backend, group, model, build: "step"
    )
    group = SimpleNamespace(
        is_chief=False, sharing=Sharing(1, 2, 1), disconnect=lambda: calls.append("disconnect")
    )
    result = train(job, group)
    assert result == WorkerResult(TrainState(step=3))
    (_, train_batches, _, _, checkpoints, _, compute_metrics, train_step), end = calls
    assert end == "disconnect"
    assert (compute_metrics, train_step) == (None, "step")
    assert isinstance(checkpoints, NoCheckpoints)
    assert train_batches.sharing == group.sharing
    assert not (tmp_path / "checkpoints").exists()


def test_a_split_without_usable_rows_is_refused(job):
    short = job.config.with_training(max_length=2)
    with pytest.raises(UserError) as error:
        train(job.model_copy(update={"config": short}))
    assert error.value.where == "training.max_length"


def test_exhausted_memory_names_the_key(job, monkeypatch):
    def fit(*_):
        raise tf.errors.ResourceExhaustedError(None, None, "out of memory")

    monkeypatch.setattr(training, "fit", fit)
    with pytest.raises(UserError) as error:
        train(job)
    assert error.value.where == "training.batch_tokens"
