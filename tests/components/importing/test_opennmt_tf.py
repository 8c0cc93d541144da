"""Models of OpenNMT-tf: the same numbers and outputs, and what is refused."""

import os
import shutil

import numpy as np
import pytest
import tensorflow as tf

from regard.components.importing.foreign_model import ForeignModel
from regard.components.importing.opennmt_tf import read_opennmt_tf
from regard.components.trainer.vocabulary_mapping import read_vocabulary
from regard.core.errors import UserError
from tests.components.importing.toolkit_fixtures import OPENNMT_TF, opennmt_tf

NAMES = sorted(path.name for path in OPENNMT_TF.iterdir())


@pytest.fixture
def folder(tmp_path):
    """A copy of a model that may change."""
    return shutil.copytree(OPENNMT_TF / "pre", tmp_path / "model")


def refused(folder, *words, heads=2):
    with pytest.raises(UserError) as error:
        read_opennmt_tf(folder, heads).build()
    text = str(error.value)
    assert error.value.remedy
    for word in words:
        assert word in text


@pytest.mark.parametrize("name", NAMES)
def test_states_and_logits_are_those_of_opennmt_tf(name):
    """Also of models that do not read the end of a source."""
    states, logits, largest = opennmt_tf(name).differences(end=not name.endswith("-end"))
    assert states < 1e-5
    assert logits < 1e-4
    assert largest > 3


@pytest.mark.parametrize("name", NAMES)
def test_greedy_outputs_are_those_of_opennmt_tf(name):
    model = opennmt_tf(name)
    texts = read_vocabulary(model.foreign.tokenizers["target"])
    expected = model.outputs["greedy"]
    outputs = [[texts[number] for number in row] for row in model.greedy(len(expected))]
    assert len(set(map(tuple, expected))) > 20
    assert outputs == expected


def test_the_weights_determine_the_settings():
    model = opennmt_tf("pre").foreign.config.model
    assert (model.tie_embeddings, model.embedding, model.scale_embeddings) == ("none", 8, True)
    assert (model.encoder.layers, model.decoder.layers, model.encoder.feed_forward) == (2, 1, 12)
    assert (model.encoder.norm, model.encoder.norm_epsilon) == ("pre", 1e-3)
    assert model.decoder.norm_epsilon == 1e-3
    assert not model.encoder.read_end
    other = opennmt_tf("post-shared").foreign.config.model
    assert (other.encoder.norm, other.decoder.norm, other.tie_embeddings) == ("post", "post", "all")
    relative = opennmt_tf("relative-target").foreign.config.model
    assert (relative.encoder.positions, relative.encoder.max_distance) == ("relative", 3)
    assert relative.tie_embeddings == "output"
    assert opennmt_tf("pre-end").foreign.config.model.encoder.read_end


def test_wrong_heads_are_refused(folder):
    for heads in (0, -1, 3, 16, None):
        refused(folder, "--heads", heads=heads)


def test_the_heads_follow_from_relative_positions():
    folder = OPENNMT_TF / "relative-target"
    model = read_opennmt_tf(folder, None).config.model
    assert (model.encoder.heads, model.decoder.heads) == (2, 2)
    refused(folder, "--heads", "2", heads=4)


@pytest.mark.parametrize(
    "name",
    ["source.vocab", "target.vocab", "target.model", "ckpt-2.index", "ckpt-2.data-00000-of-00001"],
)
@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe\x00"])
def test_missing_and_damaged_files_are_named(folder, name, content):
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    if name == "target.model" and content is None:
        refused(folder, "shared.vocab")
    elif name.startswith("ckpt"):
        refused(folder, "checkpoint")
    else:
        refused(folder, name.partition(".")[0])


def test_a_vocabulary_of_another_size_is_refused(folder):
    with (folder / "target.vocab").open("a") as file:
        file.write("more\n")
    refused(folder, "target vocabulary", "rows")


def copy_checkpoint(folder, name):
    for path in folder.glob("ckpt-2.*"):
        shutil.copyfile(path, folder / path.name.replace("ckpt-2", name))


def test_the_file_checkpoint_names_one_of_several(folder):
    copy_checkpoint(folder, "ckpt-1")
    assert "ckpt-2.index" in read_opennmt_tf(folder, 2).files
    (folder / "checkpoint").write_text('model_checkpoint_path: "/elsewhere/ckpt-7"\n')
    refused(folder, "2 checkpoints", "ckpt-7")
    (folder / "checkpoint").unlink()
    refused(folder, "2 checkpoints")
    for path in folder.glob("ckpt-1.*"):
        path.unlink()
    assert "ckpt-2.index" in read_opennmt_tf(folder, 2).files


def test_the_file_checkpoint_names_a_path_from_before_the_move(folder, capfd):
    copy_checkpoint(folder, "ckpt-1")
    (folder / "checkpoint").write_text('model_checkpoint_path: "/home/user/run/avg/ckpt-1"\n')
    assert "ckpt-1.index" in read_opennmt_tf(folder, 2).files
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"model_checkpoint_path: 3", b"other {" * 9, b"#" * (1 << 21)]
    + [b'model_checkpoint_path: "%s"' % name for name in (b"", b"..", b"/", b"a\\000b", b"ckpt-*")],
)
def test_invalid_files_checkpoint_name_none(folder, content):
    (folder / "checkpoint").write_bytes(content)
    assert "ckpt-2.index" in read_opennmt_tf(folder, 2).files
    copy_checkpoint(folder, "ckpt-1")
    refused(folder, "2 checkpoints")


def test_missing_and_empty_folders_have_different_errors(tmp_path):
    refused(tmp_path / "nowhere", "does not exist", "nowhere")
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file", "does not exist")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "no checkpoint")


def test_pipes_are_refused(folder):
    name = folder / "ckpt-2.data-00000-of-00001"
    name.unlink()
    os.mkfifo(name)
    refused(folder, "checkpoint")
    os.mkfifo(folder / "ckpt-3.index")
    (folder / "checkpoint").unlink()
    os.mkfifo(folder / "checkpoint")
    refused(folder, "2 checkpoints")


def test_unknown_tokens_have_the_last_row(folder):
    """Also if the vocabulary lists <unk>, which no text has there."""
    lines = (folder / "source.vocab").read_text().split("\n")
    lines[5] = "<unk>"
    (folder / "source.vocab").write_text("\n".join(lines))
    foreign = read_opennmt_tf(folder, 2)
    table = foreign.read_weight("encoder/embedding/table")
    original = foreign.read_weight.tensor("examples_inputter/features_inputter/embedding")
    np.testing.assert_array_equal(table[1], original[-1])


def test_weights_that_regard_does_not_have_are_named(folder):
    weights = read_opennmt_tf(folder, 2).read_weight
    assert "encoder/layer_norm/gamma" in [*weights.unread()]
    with pytest.raises(UserError, match="layers/7"):
        weights("encoder/layer_7/attention/output/kernel")


def change_checkpoint(folder, change, name="ckpt-2"):
    """Write the weights again after a change of their table ``name: value``.

    Args:
        folder: the folder of the model.
        change: changes the table in place.
        name: the name of the checkpoint.
    """
    reader = tf.train.load_checkpoint(str(folder / name))
    names = [key for key in reader.get_variable_to_shape_map() if key.startswith("model/")]
    table = {key: reader.get_tensor(key) for key in names if "OPTIMIZER_SLOT" not in key}
    change(table)
    tf.raw_ops.SaveV2(
        prefix=str(folder / name),
        tensor_names=list(table),
        shape_and_slices=[""] * len(table),
        tensors=list(table.values()),
    )


def key(name):
    return f"model/{name}/.ATTRIBUTES/VARIABLE_VALUE"


def never_built(folder, monkeypatch, *words):
    """Check that the model is refused before it is built."""
    monkeypatch.setattr(ForeignModel, "build", lambda self: pytest.fail("the model is built"))
    refused(folder, *words)


def test_more_weights_than_the_files_have_are_refused(folder, monkeypatch):
    """The index declares a wide model; the data are those of a small one."""
    data = folder / "ckpt-2.data-00000-of-00001"
    small = data.read_bytes()
    wide = np.zeros((512, 512), np.float32)
    change_checkpoint(
        folder, lambda table: table.update({key("encoder/layers/0/ffn/layer/inner/kernel"): wide})
    )
    data.write_bytes(small)
    never_built(folder, monkeypatch, "ckpt-2", "bytes")


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_gaps_between_layers_are_refused(folder, monkeypatch, side):
    def rename(table):
        for name in [name for name in table if f"{side}/layers/0/" in name]:
            table[name.replace("layers/0/", "layers/5/")] = table.pop(name)

    change_checkpoint(folder, rename)
    never_built(folder, monkeypatch, f"{side}/layers/0")


def test_names_of_layers_without_their_weights_are_refused(folder, monkeypatch):
    names = [key(f"encoder/layers/{number}/ffn/layer/inner/bias") for number in range(2, 9)]
    value = np.zeros(12, np.float32)
    change_checkpoint(folder, lambda table: table.update(dict.fromkeys(names, value)))
    never_built(folder, monkeypatch, "encoder/layers/2/", "ckpt-2")


def test_too_many_layers_are_refused(folder, monkeypatch):
    def repeat(table):
        for name in [name for name in table if "decoder/layers/0/" in name]:
            for number in range(1, 260):
                table[name.replace("layers/0/", f"layers/{number}/")] = table[name]

    change_checkpoint(folder, repeat)
    never_built(folder, monkeypatch, "260 layers")


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("encoder/layers/1/ffn/layer/inner/kernel", (1, 65_536)),
        ("encoder/layers/0/ffn/layer/inner/kernel", (1, 65_536)),
        ("encoder/layers/0/ffn/layer/inner/kernel", (12,)),
        ("encoder/layers/1/ffn/layer/outer/bias", ()),
        ("decoder/layers/0/attention/0/layer/linear_keys/kernel", (4, 16)),
        ("examples_inputter/labels_inputter/embedding", (44, 4096)),
        ("examples_inputter/features_inputter/embedding", (44, 4096)),
        ("decoder/output_layer/kernel", (8, 4096)),
        ("decoder/layer_norm/gamma", (1, 8)),
    ],
)
def test_shapes_that_do_not_fit_are_refused(folder, monkeypatch, name, shape):
    value = np.zeros(shape, np.float32)
    change_checkpoint(folder, lambda table: table.update({key(name): value}))
    never_built(folder, monkeypatch, "ckpt-2")


@pytest.mark.parametrize("part", ["0/self_attention", "1/self_attention"])
@pytest.mark.parametrize("shape", [(), (7,), (0, 4), (1, 4), (6, 4), (7, 3), (7, 0), (7, 4, 1)])
def test_relative_positions_that_do_not_fit_are_refused(tmp_path, part, shape):
    folder = shutil.copytree(OPENNMT_TF / "relative-target", tmp_path / "model")
    name = key(f"encoder/layers/{part}/layer/relative_position_keys")
    change_checkpoint(folder, lambda table: table.update({name: np.zeros(shape, np.float32)}))
    for heads in (None, 2):
        refused(folder, "ckpt-2", heads=heads)
