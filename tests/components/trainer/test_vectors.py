from __future__ import annotations

import gzip
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from components.errors import UserError
from components.trainer import vectors
from components.trainer.export import read_tokenizers
from models import tasks
from models.layers.embeddings import TokenEmbedding
from models.settings.text_to_text import Model
from pipeline.config.training import Training
from tests.models.tasks.tokenizers import write_tokenizers

TASK = tasks.get("translation")
SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
GLOVE = "the 0.5 -1 2\ndog 1 2 3\nParis 4 5 6\n. 7 8 9\n"


class Tokenizer:
    """What is used of ``tensorflow_text``'s."""

    def __init__(self, pieces):
        self.pieces = [*SPECIAL, *pieces]

    def vocab_size(self):
        return len(self.pieces)

    def id_to_string(self, ids):
        return SimpleNamespace(numpy=lambda: np.array([self.pieces[i].encode() for i in ids]))


def write(path, text):
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def embedding(pieces, depth=3, **settings):
    layer = TokenEmbedding(len(SPECIAL) + len(pieces), depth, **settings)
    layer.build()
    return layer


def load(tmp_path, pieces, text=GLOVE, others="random", **settings):
    """The report, the layer, and its table before and after."""
    layer = embedding(pieces, **settings)
    before = np.asarray(layer.table).copy()
    part = SimpleNamespace(embedding=layer)
    path = write(tmp_path / "vectors.txt", text)
    pretrained = {"source": path, "target": None, "trainable": True, "others": others}
    model = SimpleNamespace(encoder=part, decoder=None)
    report = vectors.apply(model, TASK, pretrained, {"source": Tokenizer(pieces)})
    return report["source"], layer, before, np.asarray(layer.table)


def test_rows_and_coverage(tmp_path):
    pieces = ["\u2581the", "dog", "\u2581Dog", "paris", "ing", "\u2581", "\u2581."]
    report, _, before, after = load(tmp_path, pieces)
    the, dog, paris, stop = [0.5, -1, 2], [1, 2, 3], [4, 5, 6], [7, 8, 9]
    for row, vector in {4: the, 5: dog, 6: dog, 7: paris, 10: stop}.items():
        np.testing.assert_array_equal(after[row], vector)
    found = np.array([the, dog, dog, paris, stop])
    others = [0, 1, 2, 3, 8, 9]
    factor = found.std() / before[others].std()
    np.testing.assert_allclose(after[others], before[others] * factor, rtol=1e-5)
    assert report == {
        "pieces": 6,  # the mark alone is no word
        "covered": 5,
        "share": 0.8333,
        "as_written": 1,
        "without_mark": 2,
        "ignoring_case": 2,
        "deviation": pytest.approx(found.std(), abs=1e-6),
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\u2581us 1 1 1\nus 2 2 2\nUS 3 3 3\n", [1, 2, 3]),
        ("US 3 3 3\nus 2 2 2\n\u2581us 1 1 1\n", [1, 2, 3]),
        ("US 3 3 3\n", [3, 3, 3]),
        ("Us 4 4 4\nuS 5 5 5\n", [4, 4, 4]),
        ("us 2 2 2\nus 6 6 6\n", [2, 2, 2]),
    ],
)
def test_the_best_row_wins_wherever_it_stands(tmp_path, text, expected):
    _, _, _, after = load(tmp_path, ["\u2581us", "us", "US"], text)
    np.testing.assert_array_equal(after[4:, 0], expected)


@pytest.mark.parametrize(
    "text",
    [
        "2 3\na 1 2 3\nb 4 5 6\n",
        "2 3\na 1 2 3 \nb 4 5 6 \n",
        "a 1 2 3\r\nb 4 5 6",
        ". . . 9 9 9\nb 4 5 6\na 1 2 3\n",
        b"\xe4\xf6 9 9 9\na 1 2 3\nb 4 5 6\n",
        "a 1 2 3\n\u00a0 9 9 9\n\u2028x 9 9 9\nb 4.0 5e0 6\n",
    ],
)
def test_formats(tmp_path, text):
    if isinstance(text, str) and text.startswith(". ."):
        text = "x 9 9 9\n" + text  # the first row tells the depth
    data = text if isinstance(text, bytes) else text.encode()
    for name in ("v.txt", "v.txt.gz"):
        found = vectors.find([*SPECIAL, "a", "b"], write(tmp_path / name, data), 3)
        np.testing.assert_array_equal(found.vectors[4:], [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("the 1 2\n", ":1", "a vector of 2 numbers, but model.embedding is 3: 'the 1 2'"),
        ("the\n", ":1", "a vector of no numbers, but model.embedding is 3"),
        ("40 300\nthe 1 2 3\n", ":1", "a vector of 300 numbers, but model.embedding is 3"),
        ("the 1 2 3\na 1 2\n", ":2", "a vector of 2 numbers, but"),
        ("the 1 2 3\na 1\n", ":2", "a vector of 1 number, but"),
        ("the 1 2 3\na 1 2 3 4\n", ":2", "a vector of 4 numbers, but"),
        ("the 1 2 3\n\na 1 2 3\n", ":2", "a vector of no numbers, but"),
        ("the\t1\t2\t3\n", ":1", "a vector of no numbers, but"),
        ("the 1 2 x\n", ":1", "'x' is not a number"),
        ("a 0 0 0\nthe 1 nan 3\n", ":2", "'nan' is not a number"),
        ("3 3\nthe 1 2 3\na 1 2 3\n", "", "promises 3 words, but there are 2"),
        ("der 1 2 3\n", "", "none of the 1 pieces of the source has a vector there"),
        ("", "", "the file is empty"),
        (b"PK\x03\x04", "", "a zip archive"),
    ],
)
def test_refusals(tmp_path, text, line, message):
    with pytest.raises(UserError) as error:
        load(tmp_path, ["\u2581the"], text)
    assert message in error.value.message
    assert error.value.where == f"{tmp_path / 'vectors.txt'}{line}"
    assert error.value.remedy


def test_a_missing_or_cut_off_file_is_refused(tmp_path):
    with pytest.raises(UserError, match="cannot be read: No such file"):
        vectors.find([*SPECIAL, "a"], str(tmp_path / "none.txt"), 3)
    path = tmp_path / "cut.txt.gz"
    path.write_bytes(gzip.compress(os.urandom(4000).hex().encode())[:-20])
    with pytest.raises(UserError, match="cut off"):
        vectors.find([*SPECIAL, "a"], str(path), 3)


def test_a_scaled_embedding_hands_on_the_vectors_of_the_file(tmp_path):
    _, layer, _, after = load(tmp_path, ["\u2581dog", "x"], scale=True)
    np.testing.assert_allclose(layer(np.array([[4]]))[0, 0], [1, 2, 3], rtol=1e-6)
    np.testing.assert_allclose(after[[0, 1, 2, 3, 5]].std(), after[4].std(), rtol=1e-5)


@pytest.mark.parametrize("trainable", [True, False])
def test_each_side_has_its_file_and_may_be_frozen(tmp_path, trainable):
    sides = {"source": ["\u2581dog"], "target": ["\u2581.", "\u2581the"]}
    layers = {side: embedding(pieces) for side, pieces in sides.items()}
    path = write(tmp_path / "v.txt", GLOVE)
    model = SimpleNamespace(
        encoder=SimpleNamespace(embedding=layers["source"]),
        decoder=SimpleNamespace(embedding=layers["target"]),
    )
    pretrained = {"source": path, "target": path, "trainable": trainable, "others": "random"}
    tokenizers = {side: Tokenizer(pieces) for side, pieces in sides.items()}
    reports = vectors.apply(model, TASK, pretrained, tokenizers)
    assert {side: report["covered"] for side, report in reports.items()} == {
        "source": 1,
        "target": 2,
    }
    np.testing.assert_array_equal(layers["target"].table[4:], [[7, 8, 9], [0.5, -1, 2]])
    assert [len(layer.trainable_weights) for layer in layers.values()] == [trainable] * 2


def test_pieces_without_a_vector_may_begin_as_zeros(tmp_path):
    _, _, before, after = load(tmp_path, ["\u2581the", "\u2581x"], others="zero")
    np.testing.assert_array_equal(after[5], 0.0)
    assert before[5].any()
    assert after[4].any()


def test_an_embedding_may_have_more_rows_than_there_are_pieces(tmp_path):
    layer = TokenEmbedding(8, 3)
    layer.build()
    model = SimpleNamespace(encoder=SimpleNamespace(embedding=layer), decoder=None)
    path = write(tmp_path / "vectors.txt", GLOVE)
    pretrained = {"source": path, "trainable": True, "others": "random"}
    tokenizers = {"source": Tokenizer(["\u2581the"])}
    report = vectors.apply(model, TASK, pretrained, tokenizers)
    assert report["source"]["pieces"] == 1
    assert np.asarray(layer.table)[5:].any()


def test_the_coverage_is_told(tmp_path, monkeypatch):
    notes = []
    monkeypatch.setattr(vectors.events, "emit", lambda kind, **fields: notes.append(fields))
    load(tmp_path, ["\u2581the", "\u2581Dog", "x"])
    told = "word vectors for 2 of 3 pieces of the source (66.7%), 1 of them ignoring case"
    assert notes == [{"node": "Trainer", "text": told}]


def test_glove_covers_the_frequent_words_of_multi30k():
    folder = Path(os.environ.get("REGARD_DATA", ""))
    path = folder / "glove-6b-50d-subset" / "glove.6B.50d.subset.txt.gz"
    if not path.is_file():
        pytest.skip("REGARD_DATA does not name a folder with glove-6b-50d-subset")
    words = ["two", "A", "Man", "snow", "sidewalk"]
    found = vectors.find([*SPECIAL, *(f"\u2581{word}" for word in words)], str(path), 50)
    assert found.rows[4:].tolist() == [True, True, True, True, False]
    assert found.report()["ignoring_case"] == 2
    with gzip.open(path, "rt", encoding="utf-8") as file:
        two = next(line for line in file if line.startswith("two ")).split()[1:]
    np.testing.assert_array_equal(found.vectors[4], np.array(two, "float32"))


def test_a_real_model_gets_the_vectors_of_its_pieces(tmp_path):
    write_tokenizers(tmp_path)
    tokenizers = read_tokenizers(tmp_path, TASK.description.text_features)
    size = int(tokenizers["source"].vocab_size())
    names = [tokenizers["source"].id_to_string(i).numpy().decode() for i in range(4, size)]
    row = next(i for i, name in enumerate(names, 4) if name.startswith("\u2581") and name[1:])
    file = tmp_path / "vectors.txt"
    file.write_text(f"{names[row - 4][1:]} 1 2 3 4 5 6 7 8\n")
    pretrained = {"source": str(file), "trainable": False}
    settings = Model(embedding=8, pretrained=pretrained).model_dump()
    pieces = {side: int(t.vocab_size()) for side, t in tokenizers.items()}
    model = TASK.build(settings, Training().model_dump(), pieces)
    report = vectors.apply(model, TASK, settings["pretrained"], tokenizers)
    np.testing.assert_allclose(model.encoder.embedding.table[row], np.arange(1.0, 9.0))
    assert report["source"]["covered"] >= report["source"]["without_mark"] >= 1
    frozen = {weight.path for weight in model.non_trainable_weights}
    assert model.encoder.embedding.table.path in frozen
