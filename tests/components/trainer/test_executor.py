"""The folder of checkpoints where the graph was made without the data."""

import pytest

from components.trainer.executor import checkpoints_of


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
