"""What a run sets anew, and the folder of checkpoints where the graph was made without the data."""

import json
from types import SimpleNamespace

import pytest
from tfx.components.trainer.executor import GenericExecutor
from tfx.types.standard_artifacts import Examples, Model, ModelRun, TransformGraph

from components.errors import UserError
from components.trainer.executor import Executor, checkpoints_of
from components.trainer.holding import remove


@pytest.fixture
def folders(tmp_path):
    (tmp_path / "examples" / "Split-train").mkdir(parents=True)
    (tmp_path / "examples" / "Split-train" / "data.gz").write_bytes(b"rows")
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer" / "source.model").write_bytes(b"pieces")
    (tmp_path / "vectors.txt").write_text("a 0.5")
    return [tmp_path / "examples", tmp_path / "tokenizer", tmp_path / "not-there"]


def config(folders, seed=17):
    vectors = {"source": str(folders[0].parent / "vectors.txt"), "trainable": True}
    return {
        "checkpoints": "/regard/checkpoints/k3y",
        "training": {"seed": seed},
        "model": {"pretrained": vectors},
    }


def test_the_same_training_finds_its_own(folders):
    found = checkpoints_of(config(folders), folders)
    assert found.startswith("/regard/checkpoints/k3y-")
    assert checkpoints_of(config(folders), folders) == found


@pytest.mark.parametrize(
    "name", ["examples/Split-train/data.gz", "tokenizer/source.model", "vectors.txt"]
)
def test_other_content_is_another_training(folders, name):
    before = checkpoints_of(config(folders), folders)
    (folders[0].parent / name).write_bytes(b"other")
    assert checkpoints_of(config(folders), folders) != before


def test_other_settings_are_another_training(folders):
    assert checkpoints_of(config(folders, 1), folders) != checkpoints_of(config(folders), folders)


def test_a_model_without_vectors(folders):
    plain = {**config(folders), "model": {}}
    assert checkpoints_of(plain, folders) != checkpoints_of(config(folders), folders)


@pytest.fixture
def arguments(tmp_path, folders):
    """What ``run_fn`` is called with."""

    def made(kind):
        artifact = kind()
        artifact.uri = str(tmp_path / kind.TYPE_NAME)
        return artifact

    examples, graph = made(Examples), made(TransformGraph)
    examples.uri = str(folders[0])
    examples.split_names = '["train", "eval"]'
    (folders[0] / "Split-eval").mkdir()

    def call(training, **properties):
        ends = dict.fromkeys(("max_steps", "max_minutes", "early_stop"))
        limits = {"max_epochs": 20, "seed": 17, **ends}
        custom = {"training": {**limits, **training}, "model": {}, "checkpoints": "/c/k3y"}
        splits = {name: json.dumps({"splits": [name.partition("_")[0]]}) for name in _ARGS}
        return (
            Executor()
            .settled(
                {"examples": [examples], "transform_graph": [graph]},
                {"model": [made(Model)], "model_run": [made(ModelRun)]},
                {**splits, "custom_config": json.dumps({**custom, **properties.pop("more", {})})}
                | properties,
            )
            .custom_config
        )

    return call


_ARGS = ("train_args", "eval_args")


def test_without_parameters_everything_is_as_it_was_compiled(arguments):
    config = arguments({})
    assert config["training"]["max_epochs"] == 20
    assert config["checkpoints"] == "/c/k3y"


def test_a_run_sets_its_own(arguments):
    config = arguments({}, max_epochs=3, seed=5, more={"checkpoints_by_content": True})
    assert (config["training"]["max_epochs"], config["training"]["seed"]) == (3, 5)
    assert config["checkpoints"].startswith("/c/k3y-")
    assert "checkpoints_by_content" not in config


def test_a_training_without_end_is_refused(arguments):
    with pytest.raises(UserError, match="nothing ends this training"):
        arguments({}, max_epochs=0)
    for end in ({"max_steps": 9}, {"early_stop": {"patience": 3}}):
        assert arguments(end, max_epochs=0)["training"]["max_epochs"] is None


def test_the_folder_is_held_while_it_trains(tmp_path, monkeypatch):
    """As GenericExecutor does it: the arguments first, then ``run_fn``."""
    folder = tmp_path / "checkpoints" / "k3y"
    during = []

    def do(self, *given):
        self._GetFnArgs(*given)
        remove(folder)
        during.append(folder.is_dir())

    settled = SimpleNamespace(custom_config={"checkpoints": str(folder)})
    monkeypatch.setattr(Executor, "settled", lambda self, *given: settled)
    monkeypatch.setattr(GenericExecutor, "Do", do)
    Executor().Do({}, {}, {})
    assert during == [True]
    remove(folder)
    assert not folder.exists()
