"""Each training has a folder of its own, named by its settings, its code and its data."""

from pathlib import Path

import pytest

from regard.components.settings.trainer import (
    RunInputs,
    StartingModel,
    TrainerConfig,
    TrainingData,
    TrainingJob,
)
from regard.components.trainer import training_key as training_key_module
from regard.components.trainer.training_key import with_checkpoint_folder


@pytest.fixture
def data(tmp_path):
    shards = []
    for split in ("train", "eval"):
        shard = tmp_path / "examples" / f"Split-{split}" / "data-00000-of-00001.gz"
        shard.parent.mkdir(parents=True)
        shard.write_bytes(b"rows")
        shards.append([str(shard)])
    (tmp_path / "graph" / "tokenizer").mkdir(parents=True)
    (tmp_path / "graph" / "tokenizer" / "source.model").write_bytes(b"tokens")
    (tmp_path / "vectors.txt").write_text("a 0.5")
    return TrainingData(*shards, str(tmp_path / "graph"))


def folder_of(data, pretrained=True, start=None, **training):
    vectors = {"source": str(Path(data.transform_graph).parent / "vectors.txt")}
    config = TrainerConfig(
        task="translation",
        model={"pretrained": vectors if pretrained else None},
        training=training,
    )
    run = RunInputs(start=start, checkpoints="/fixed/folder")
    job = TrainingJob(config=config, run=run, data=data, run_folder="/run")
    return with_checkpoint_folder(job).run.checkpoint_folder


def test_an_equal_training_gets_the_same_folder(data):
    folder = folder_of(data)
    assert folder.parent == Path("/fixed/folder")
    assert folder_of(data) == folder


@pytest.mark.parametrize(
    "name",
    [
        "examples/Split-train/data-00000-of-00001.gz",
        "examples/Split-eval/data-00000-of-00001.gz",
        "graph/tokenizer/source.model",
        "vectors.txt",
    ],
)
def test_other_content_gets_another_folder(data, name):
    folder = folder_of(data)
    (Path(data.transform_graph).parent / name).write_bytes(b"other")
    assert folder_of(data) != folder


@pytest.mark.parametrize("changes", [{"seed": 1}, {"learning_rate": 0.5}, {"pretrained": False}])
def test_other_settings_get_another_folder(data, changes):
    assert folder_of(data, **changes) != folder_of(data)


def test_other_code_gets_another_folder(data, monkeypatch):
    folder = folder_of(data)
    monkeypatch.setattr(training_key_module, "code_digest", lambda *modules: "other")
    assert folder_of(data) != folder


def test_another_start_gets_another_folder(data):
    warm = {"warm_start": {"model": "production"}}
    starts = [
        None,
        *(StartingModel(model="a@1", path="/a/1", digest=digest * 32) for digest in "xy"),
    ]
    assert len({folder_of(data, start=start, **warm) for start in starts}) == 3


def test_an_ensemble_does_not_train_again(data):
    assert folder_of(data, ensemble=("other@1",)) == folder_of(data)


def test_a_key_that_may_describe_other_data_is_extended_by_a_digest_of_the_files(data):
    """Otherwise a finished training on other data is restored."""

    def folder(**run):
        config = TrainerConfig(task="translation", model={}, training={})
        inputs = RunInputs(checkpoint_key="k3y", checkpoints="/fixed", **run)
        job = with_checkpoint_folder(
            TrainingJob(config=config, run=inputs, data=data, run_folder="/run")
        )
        assert with_checkpoint_folder(job) == job
        return job.run.checkpoint_folder.name

    first = folder(is_rewirable=True)
    assert first == folder(is_rewirable=True)
    Path(data.train_files[0]).write_bytes(b"other rows")
    second = folder(is_rewirable=True)
    assert first.startswith("k3y-")  # so `--from Trainer` finds it
    assert second.startswith("k3y-")
    assert first != second
    assert folder() == "k3y"


def test_without_a_folder_it_is_next_to_those_of_the_executions(data, tmp_path):
    run = RunInputs(checkpoint_key="k3y")
    with pytest.raises(ValueError, match="no folder"):
        _ = run.checkpoint_folder
    job = TrainingJob(
        config=TrainerConfig(task="translation", model={}, training={}),
        run=run,
        data=data,
        run_folder=str(tmp_path / "model_run" / "7"),
    )
    resolved = with_checkpoint_folder(job)
    assert resolved.run.checkpoint_folder == tmp_path / "model_run" / "checkpoints" / "k3y"
    assert with_checkpoint_folder(resolved) == resolved  # what is known is used
