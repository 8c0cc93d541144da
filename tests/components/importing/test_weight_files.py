"""Which file of a folder has the weights, and what is said if there is none."""

import pytest

from regard.components.importing.weight_files import find_weights, open_weights
from regard.core.errors import NotFoundError, UserError
from tests.components.importing.test_pytorch_file import MODELS


def touch(folder, *names):
    for name in names:
        (folder / name).write_bytes(b"x")
    return folder


def test_safetensors_come_before_pytorch(tmp_path):
    touch(tmp_path, "pytorch_model.bin", "tf_model.h5", "config.json")
    assert find_weights(tmp_path) == tmp_path / "pytorch_model.bin"
    touch(tmp_path, "model.safetensors")
    assert find_weights(str(tmp_path)) == tmp_path / "model.safetensors"


@pytest.mark.parametrize(
    "names",
    [
        ["model.safetensors.index.json", "model-00001-of-00002.safetensors"],
        ["pytorch_model.bin.index.json", "pytorch_model-00001-of-00002.bin"],
        ["model-00001-of-00002.safetensors"],
        ["tf_model.h5"],
        ["flax_model.msgpack"],
        ["opus.spm32k-spm32k.transformer-align.model1.npz.best-perplexity.npz"],
        ["model-q4_k.gguf"],
        ["model.bin", "shared_vocabulary.json"],
        ["encoder_model.onnx"],
        ["rust_model.ot"],
    ],
)
def test_other_weights_are_named(tmp_path, names):
    touch(tmp_path, "config.json", *names)
    with pytest.raises(UserError) as error:
        find_weights(tmp_path)
    assert names[0] in str(error.value)
    assert error.value.where == str(tmp_path)
    assert error.value.remedy
    assert not isinstance(error.value, NotFoundError)


def test_folders_without_weights(tmp_path):
    touch(tmp_path, "config.json")
    for path in (tmp_path, tmp_path / "none", tmp_path / "config.json"):
        with pytest.raises(NotFoundError) as error:
            find_weights(path)
        assert error.value.where == str(path)


def test_a_link_to_nothing_is_not_passed_over(tmp_path):
    """Hugging Face's cache has links; one without its file must not select older weights."""
    (tmp_path / "model.safetensors").symlink_to(tmp_path / "blob")
    touch(tmp_path, "pytorch_model.bin")
    with pytest.raises(UserError, match=r"model\.safetensors"):
        open_weights(find_weights(tmp_path))


@pytest.mark.parametrize("folder", sorted(MODELS.iterdir()), ids=lambda folder: folder.name)
def test_the_weights_of_hugging_face(folder):
    with open_weights(find_weights(folder)) as tensors:
        assert tensors["model.encoder.layers.0.fc1.bias"].dtype == "float32"
