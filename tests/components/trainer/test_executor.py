"""Run-time parameters, and the checkpoint folder of a pipeline compiled without the data."""

import json
from types import SimpleNamespace

import pytest
from tfx.components.trainer.executor import GenericExecutor
from tfx.types.standard_artifacts import Examples, Model, ModelRun, TransformGraph

from regard.components.common.errors import UserError
from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer.checkpoint import remove_unless_locked
from regard.components.trainer.executor import TrainerExecutor, checkpoint_folder


@pytest.fixture
def folders(tmp_path):
    (tmp_path / "examples" / "Split-train").mkdir(parents=True)
    (tmp_path / "examples" / "Split-train" / "data.gz").write_bytes(b"rows")
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer" / "source.model").write_bytes(b"tokens")
    (tmp_path / "vectors.txt").write_text("a 0.5")
    return [tmp_path / "examples", tmp_path / "tokenizer", tmp_path / "missing"]


def trainer_config(folders, seed=17, pretrained=True):
    vectors = {"source": str(folders[0].parent / "vectors.txt")} if pretrained else None
    return TrainerConfig(
        task="translation",
        model={"pretrained": vectors},
        training={"seed": seed},
        checkpoints="/regard/checkpoints/k3y",
    )


def test_an_equal_training_gets_the_same_folder(folders):
    folder = checkpoint_folder(trainer_config(folders), folders)
    assert folder.startswith("/regard/checkpoints/k3y-")
    assert checkpoint_folder(trainer_config(folders), folders) == folder


@pytest.mark.parametrize(
    "name", ["examples/Split-train/data.gz", "tokenizer/source.model", "vectors.txt"]
)
def test_other_content_gets_another_folder(folders, name):
    folder = checkpoint_folder(trainer_config(folders), folders)
    (folders[0].parent / name).write_bytes(b"other")
    assert checkpoint_folder(trainer_config(folders), folders) != folder


@pytest.mark.parametrize("changes", [{"seed": 1}, {"pretrained": False}])
def test_other_settings_get_another_folder(folders, changes):
    folder = checkpoint_folder(trainer_config(folders), folders)
    assert checkpoint_folder(trainer_config(folders, **changes), folders) != folder


def test_an_ensemble_does_not_train_again(folders):
    config = trainer_config(folders)
    training = config.training.model_copy(update={"ensemble": ("other@1",)})
    changed = config.model_copy(update={"training": training})
    assert checkpoint_folder(changed, folders) == checkpoint_folder(config, folders)


@pytest.fixture
def resolve_config(tmp_path, folders):
    """The configuration that ``run_fn`` gets for settings and run-time parameters."""

    def artifact(kind):
        instance = kind()
        instance.uri = str(tmp_path / kind.TYPE_NAME)
        return instance

    examples, graph = artifact(Examples), artifact(TransformGraph)
    examples.uri = str(folders[0])
    examples.split_names = '["train", "eval"]'
    (folders[0] / "Split-eval").mkdir()
    splits = {
        f"{name}_args": json.dumps({"splits": [split]})
        for name, split in (("train", "train"), ("eval", "eval"))
    }

    def resolve(training, by_content=False, published="", model=None, **parameters):
        config = {
            "task": "translation",
            "model": {},
            "training": {"early_stopping": None, **training},
            "checkpoints": "/c/k3y",
            "checkpoints_by_content": by_content,
            "published": str(published),
        }
        fn_args = TrainerExecutor().resolve_fn_args(
            {"examples": [examples], "transform_graph": [graph]},
            {"model": [model or artifact(Model)], "model_run": [artifact(ModelRun)]},
            {**splits, "custom_config": json.dumps(config), **parameters},
        )
        return TrainerConfig.model_validate(fn_args.custom_config)

    return resolve


def test_without_parameters_the_compiled_configuration_applies(resolve_config):
    config = resolve_config({})
    assert config.training.max_epochs == 20
    assert config.checkpoints == "/c/k3y"


def test_parameters_of_a_run(resolve_config):
    config = resolve_config({}, by_content=True, max_epochs=3, seed=5)
    assert (config.training.max_epochs, config.training.seed) == (3, 5)
    assert config.checkpoints.startswith("/c/k3y-")
    assert not config.checkpoints_by_content


def test_a_training_without_a_limit_is_refused(resolve_config):
    with pytest.raises(UserError, match="has no limit"):
        resolve_config({}, max_epochs=0)
    for limit in ({"max_steps": 9}, {"early_stopping": {"patience": 3}}):
        assert resolve_config(limit, max_epochs=0).training.max_epochs is None


def publish(folder, version, **record):
    (folder / str(version)).mkdir(parents=True)
    (folder / str(version) / "saved_model.pb").write_bytes(b"graph %d" % version)
    (folder / str(version) / "regard.json").write_text(json.dumps(record))


def test_the_start_is_the_version_in_production_at_run_time(resolve_config, tmp_path):
    published, training = tmp_path / "registry" / "tiny", {"warm_start": {"model": "production"}}
    first = resolve_config(training, True, published)
    assert first.start is None
    assert first.checkpoints.endswith("-random")

    publish(published, 1)
    model = Model()
    model.uri = str(tmp_path / "model")
    config = resolve_config(training, True, published, model)
    assert config.start.model == "tiny@1"
    assert config.checkpoints != first.checkpoints
    record = json.loads(model.get_string_custom_property("warm_start"))
    assert record["start"] == config.start.model_dump()
    assert config.checkpoints == f"/c/{record['training']}-{config.start.digest[:16]}"

    # The version that this training produces is not its own start, so a second run resumes.
    publish(published, 2, warm_start=record)
    assert resolve_config(training, True, published) == config
    other = resolve_config({**training, "seed": 2}, True, published)
    assert other.start.model == "tiny@2"


def test_a_model_that_does_not_exist_is_refused(resolve_config, tmp_path):
    with pytest.raises(UserError) as caught:
        resolve_config({"warm_start": {"model": "old@3"}}, True, tmp_path / "registry" / "tiny")
    assert caught.value.where == "training.warm_start.model"
    with pytest.raises(UserError) as caught:
        resolve_config({"ensemble": ["old@3"]}, True, tmp_path / "registry" / "tiny")
    assert caught.value.where == "training.ensemble"


def test_the_checkpoint_lock_is_held_while_training(tmp_path, monkeypatch):
    """GenericExecutor resolves the arguments first, then calls ``run_fn``."""
    folder = tmp_path / "checkpoints" / "k3y"
    exists_during_training = []

    def do(self, *arguments):
        self._GetFnArgs(*arguments)
        remove_unless_locked(folder)
        exists_during_training.append(folder.is_dir())

    fn_args = SimpleNamespace(custom_config={"checkpoints": str(folder)})
    monkeypatch.setattr(TrainerExecutor, "resolve_fn_args", lambda self, *arguments: fn_args)
    monkeypatch.setattr(GenericExecutor, "Do", do)
    TrainerExecutor().Do({}, {}, {})
    assert exists_during_training == [True]
    remove_unless_locked(folder)
    assert not folder.exists()
