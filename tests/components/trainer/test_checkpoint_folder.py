"""Each training has a folder of its own, named by its settings, its code and its data."""

from pathlib import Path

import pytest

from regard.components.settings.trainer import StartingModel, TrainerConfig, TrainingData
from regard.components.trainer import training_key as training_key_module
from regard.components.trainer.checkpoint_folder import (
    report_other_checkpoints,
    with_checkpoint_key,
    with_default_folder,
)
from regard.core import owned_folders


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
        start=start,
        checkpoints="/fixed/folder",
    )
    return with_checkpoint_key(config, data).checkpoint_folder


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


def test_a_key_that_is_known_is_used(data):
    config = TrainerConfig(task="translation", model={}, training={}, checkpoint_key="k3y")
    assert with_checkpoint_key(config, data) == config


def test_without_a_folder_it_is_next_to_those_of_the_executions(tmp_path):
    config = TrainerConfig(task="translation", model={}, training={}, checkpoint_key="k3y")
    with pytest.raises(ValueError, match="no folder"):
        _ = config.checkpoint_folder
    resolved = with_default_folder(config, str(tmp_path / "model_run" / "7"))
    assert resolved.checkpoint_folder == tmp_path / "model_run" / "checkpoints" / "k3y"
    assert with_default_folder(resolved, "/other/9") == resolved


@pytest.fixture
def reports(tmp_path, monkeypatch):
    path = tmp_path / "events"
    monkeypatch.setenv("REGARD_EVENTS", str(path))

    def report(folder):
        report_other_checkpoints(folder)
        return path.read_text() if path.exists() else ""

    return report


def test_a_checkpoint_of_unknown_settings_is_reported(tmp_path, reports):
    (tmp_path / "fixed").mkdir()
    (tmp_path / "fixed" / "last.npz").write_bytes(b"state")
    folder = tmp_path / "fixed" / "k3y"
    text = reports(folder)
    assert '"warning"' in text
    assert str(folder) in text


def test_checkpoints_of_other_settings_are_reported(tmp_path, reports):
    other = tmp_path / "fixed" / "0ther"
    owned_folders.create(other, owned_folders.CHECKPOINTS)
    assert reports(tmp_path / "fixed" / "k3y") == ""
    (other / "last.npz").write_bytes(b"state")
    assert str(tmp_path / "fixed") in reports(tmp_path / "fixed" / "k3y")


def test_a_training_that_resumes_reports_nothing(tmp_path, reports):
    for name in ("k3y", "0ther"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "last.npz").write_bytes(b"state")
    assert reports(tmp_path / "k3y") == ""
