"""SavedModels with files that are missing, cut or of another kind."""

import os
import shutil

import pytest
import tensorflow as tf

from regard.serving.checkpoint_index import shard_sizes
from regard.serving.contract import CONTRACT
from regard.serving.whole_model import IncompleteModelError, check_whole, take_snapshot
from tests import fake_models

INDEX, DATA = "variables/variables.index", "variables/variables.data-00000-of-00001"
NEEDED = ["saved_model.pb", INDEX, DATA, CONTRACT]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return fake_models.save(fake_models.Reverser(), tmp_path_factory.mktemp("whole") / "1")


@pytest.fixture
def model(original, tmp_path):
    return shutil.copytree(original, tmp_path / "1")


def test_the_sizes_of_variables(original, tmp_path):
    index = (original / INDEX).read_bytes()
    assert shard_sizes(index) == [(original / DATA).stat().st_size]
    many = tf.train.Checkpoint(**{f"v{n:03}": tf.Variable(tf.zeros(n)) for n in range(300)})
    path = many.write(str(tmp_path / "many"))
    total = (tmp_path / "many.data-00000-of-00001").stat().st_size
    assert shard_sizes((tmp_path / f"{path}.index").read_bytes()) == [total]


def test_every_cut_of_an_index_is_an_error(original):
    index = (original / INDEX).read_bytes()
    for size in range(len(index)):
        with pytest.raises(ValueError):
            shard_sizes(index[:size])
        with pytest.raises(ValueError):
            shard_sizes(index[:size] + bytes(len(index) - size))


@pytest.mark.parametrize("file", NEEDED)
@pytest.mark.parametrize("damage", ["missing", "empty", "half", "folder", "fifo"])
def test_a_needed_file_that_is_not_whole(model, file, damage):
    check_whole(model)
    path = model / file
    content = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage == "fifo":
        os.mkfifo(path)
    elif damage != "missing":
        path.write_bytes(content[: len(content) // 2 if damage == "half" else 0])
    if (file, damage) == (CONTRACT, "missing"):
        check_whole(model)  # as a model of another program
        (model / "regard.json").write_text("{}")
    with pytest.raises(IncompleteModelError):
        check_whole(model)


@pytest.mark.parametrize("contract", ["[]", "null", "{}", '"task"', "[" * 100_000])
def test_a_contract_of_another_kind(model, contract):
    (model / CONTRACT).write_text(contract)
    with pytest.raises(IncompleteModelError):
        check_whole(model)


def test_a_missing_asset(tmp_path):
    (tmp_path / "words.txt").write_text("a\nb\n")

    class Lookup(tf.Module):
        def __init__(self):
            super().__init__()
            file = tf.lookup.TextFileInitializer(
                str(tmp_path / "words.txt"),
                tf.string,
                tf.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64,
                tf.lookup.TextFileIndex.LINE_NUMBER,
            )
            self.table = tf.lookup.StaticHashTable(file, -1)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="word")])
        def find(self, word):
            return {"id": self.table[word]}

    module = Lookup()
    tf.saved_model.save(module, str(tmp_path / "1"), {"serving_default": module.find})
    check_whole(tmp_path / "1")
    (asset,) = (tmp_path / "1" / "assets").iterdir()
    asset.unlink()
    with pytest.raises(IncompleteModelError, match=r"words\.txt is missing"):
        check_whole(tmp_path / "1")


def test_a_model_without_variables_or_contract_is_whole(tmp_path):
    """A SavedModel of another program, in TensorFlow 1's way without a folder of variables."""
    builder = tf.compat.v1.saved_model.Builder(str(tmp_path / "1"))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None], "x")
        signature = tf.compat.v1.saved_model.predict_signature_def({"x": x}, {"y": x + 1})
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
    builder.save()
    shutil.rmtree(tmp_path / "1" / "variables", ignore_errors=True)
    check_whole(tmp_path / "1")


def test_what_else_is_in_the_folder(model):
    before = take_snapshot(model)
    (model / "dangling").symlink_to("nowhere")
    (model / "loop").symlink_to(model)
    assert take_snapshot(model) != before
    with pytest.raises(IncompleteModelError, match="symbolic links"):
        check_whole(model)
    (model / "loop").unlink()
    check_whole(model)
    os.mkfifo(model / "other")
    with pytest.raises(IncompleteModelError, match="other cannot be read: it is a FIFO"):
        check_whole(model)
