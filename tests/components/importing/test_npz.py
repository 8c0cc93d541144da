"""Folders with ``model.yaml``, ``weights.npz`` and SentencePiece models."""

import os
import zipfile

import numpy as np
import pytest
import sentencepiece

from regard.components.importing.npz import read_npz, weight_shapes
from regard.core.errors import UserError
from regard.core.yaml_text import to_yaml
from regard.models.vocabulary import BOS, EOS, UNK
from tests.components.importing.huggingface_fixtures import FOLDER

RANDOM = np.random.default_rng(3)
SIDE = {"type": "transformer", "layers": 1, "heads": 2, "feed_forward": 8}
MODEL = {
    "embedding": 4,
    "tie_embeddings": "none",
    "encoder": SIDE,
    "decoder": SIDE,
    "attention": {"score": "scaled_dot"},
}


def write(folder, arrays=None, **settings):
    """Write a folder with a model of random weights, and return the weights."""
    folder.mkdir(exist_ok=True)
    (folder / "model.yaml").write_text(to_yaml({"model": MODEL, **settings}))
    for side in ("source", "target"):
        (folder / f"{side}.model").write_bytes((FOLDER / "marian-opus/source.spm").read_bytes())
    if arrays is None:
        shapes = weight_shapes(folder)
        arrays = {name: RANDOM.normal(size=shape) for name, shape in shapes.items()}
    np.savez(folder / "weights.npz", **arrays)
    return arrays


def refused(folder, *words):
    with pytest.raises(UserError) as error:
        read_npz(folder).build()
    assert error.value.remedy
    for word in words:
        assert word in str(error.value)


def test_rows_have_the_order_of_the_sentencepiece_model(tmp_path):
    arrays = write(tmp_path / "m", search={"type": "greedy"}, licence="mit")
    foreign = read_npz(tmp_path / "m")
    assert foreign.licence == "mit"
    assert foreign.config.search.type == "greedy"
    _, model, tokenizers = foreign.build()
    original = sentencepiece.SentencePieceProcessor(str(tmp_path / "m/source.model"))
    table = np.asarray(model.encoder.embedding.table)
    for text in ("téro ko ma ma kota", "kirésa lo"):
        ids = tokenizers["source"].tokenize(text).numpy()
        np.testing.assert_allclose(
            table[ids], arrays["encoder/embedding/table"][original.encode(text)], rtol=1e-6
        )
    special = [original.unk_id(), original.bos_id(), original.eos_id()]
    expected = arrays["decoder/embedding/table"][special]
    target = np.asarray(model.decoder.embedding.table)
    np.testing.assert_allclose(target[[UNK, BOS, EOS]], expected, rtol=1e-6)
    bias = np.asarray(model.decoder.logits.bias)
    np.testing.assert_allclose(bias[EOS], arrays["decoder/logits/bias"][special[2]], rtol=1e-6)
    assert bias[BOS] == -100


def test_rows_may_have_the_order_of_a_list_of_tokens(tmp_path):
    """As in OpenNMT-tf: the padding first, and one more row for unknown tokens."""
    folder = tmp_path / "m"
    write(folder, {})
    original = sentencepiece.SentencePieceProcessor(str(folder / "source.model"))
    pieces = [original.id_to_piece(i) for i in range(original.get_piece_size())]
    ordinary = sorted(piece for piece in pieces if not piece.startswith("<"))
    lines = ["<blank>", "<s>", "</s>", *ordinary[:-1]]
    for side in ("source", "target"):
        (folder / f"{side}.vocab").write_text("\n".join(lines) + "\n")
    shapes = weight_shapes(folder)
    assert shapes["encoder/embedding/table"] == (len(lines) + 1, 4)
    arrays = {name: RANDOM.normal(size=shape) for name, shape in shapes.items()}
    np.savez(folder / "weights.npz", **arrays)
    foreign = read_npz(folder)
    _, model, tokenizers = foreign.build()
    table, rows = np.asarray(model.encoder.embedding.table), arrays["encoder/embedding/table"]
    for piece in ordinary:
        number = int(tokenizers["source"].string_to_id(piece))
        row = lines.index(piece) if piece in lines else len(lines)
        np.testing.assert_allclose(table[number], rows[row], rtol=1e-6)
    np.testing.assert_allclose(table[UNK], rows[-1], rtol=1e-6)


def test_tags_are_symbols_of_both_sides(tmp_path):
    write(tmp_path / "m", tags=["de", "fr"])
    foreign = read_npz(tmp_path / "m")
    _, _, tokenizers = foreign.build()
    ids = tokenizers["source"].tokenize(["<de> ko", "<fr> ko", "ko"]).to_list()
    assert ids[0][1:] == ids[1][1:] == ids[2]
    assert ids[0][0] != ids[1][0]
    assert foreign.config.tags.known == ("de", "fr")


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"network": {}}, "network"),
        ({"task": "swimming"}, "swimming"),
        ({"task": "similarity"}, "similarity"),
        ({"task": [1]}, "[1]"),
        ({"model": {**MODEL, "embedding": "wide"}}, "embedding"),
        ({"model": {**MODEL, "embedding": 5}}, "width 5"),
        ({"model": {**MODEL, "embedding": 8}}, "shape"),
        ({"tags": ["a b"]}, "tags"),
        ({"tags": 7}, "tags"),
    ],
)
def test_wrong_settings_are_named(tmp_path, settings, word):
    arrays = write(tmp_path / "m")
    write(tmp_path / "m", arrays, **settings)
    refused(tmp_path / "m", word)


def test_wrong_weights_are_named(tmp_path):
    folder = tmp_path / "m"
    arrays = write(folder)
    name = "decoder/layer_0/cross/output/kernel"
    write(folder, {key: value for key, value in arrays.items() if key != name})
    refused(folder, name)
    write(folder, {**arrays, "more": np.zeros(3)})
    refused(folder, "more")
    write(folder, {**arrays, name: np.zeros((4, 5))})
    refused(folder, name)
    write(folder, {**arrays, "encoder/embedding/table": np.zeros((3, 4))})
    refused(folder, "encoder/embedding/table")
    write(folder, {**arrays, name: np.full((4, 4), np.inf)})
    refused(folder, name)
    write(folder, {**arrays, name: np.array([[{}] * 4] * 4, dtype=object)})
    refused(folder, name)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY", b"no archive"])
def test_a_damaged_archive_is_named(tmp_path, content):
    write(tmp_path / "m")
    (tmp_path / "m/weights.npz").write_bytes(content)
    refused(tmp_path / "m", "weights.npz")


def test_missing_files_are_named(tmp_path):
    for name in ("model.yaml", "weights.npz", "target.model"):
        write(tmp_path / "m")
        (tmp_path / "m" / name).unlink()
        refused(tmp_path / "m", "shared.model" if name == "target.model" else name)


def test_a_pipe_and_an_array_of_another_size_are_refused_before_they_are_read(tmp_path):
    folder = tmp_path / "m"
    arrays = write(folder)
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**7, 10**6)}
    with zipfile.ZipFile(folder / "weights.npz", "w") as archive:
        for key in arrays:
            with archive.open(f"{key}.npy", "w") as file:
                np.lib.format.write_array_header_1_0(file, header)
    refused(folder, "10000000")
    (folder / "weights.npz").unlink()
    os.mkfifo(folder / "weights.npz")
    refused(folder, "weights.npz")
