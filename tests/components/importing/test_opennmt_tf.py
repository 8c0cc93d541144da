"""Models of OpenNMT-tf: the same numbers and outputs, and what is refused."""

import os
import shutil

import numpy as np
import pytest

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
    for heads in (0, -1, 3, 16):
        refused(folder, "heads", heads=heads)


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


def test_the_file_checkpoint_names_one_of_several(folder):
    for path in folder.glob("ckpt-2.*"):
        shutil.copyfile(path, folder / path.name.replace("ckpt-2", "ckpt-1"))
    assert "ckpt-2.index" in read_opennmt_tf(folder, 2).files
    (folder / "checkpoint").write_text('model_checkpoint_path: "/elsewhere/ckpt-7"\n')
    refused(folder, "2 checkpoints")
    (folder / "checkpoint").unlink()
    refused(folder, "2 checkpoints")
    for path in folder.glob("ckpt-1.*"):
        path.unlink()
    assert "ckpt-2.index" in read_opennmt_tf(folder, 2).files


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
