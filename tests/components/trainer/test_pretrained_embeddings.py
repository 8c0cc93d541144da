import gzip
import os
from types import SimpleNamespace

import numpy as np
import pytest

from regard.components.common.sentencepiece_models import (
    create_processors,
    read_sentencepiece_models,
)
from regard.components.trainer import pretrained_embeddings
from regard.core.errors import UserError
from regard.models import tasks
from regard.models.layers.embeddings import TokenEmbedding
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.text_to_text.settings import TextEmbeddingsConfig, TextToTextModelConfig
from tests.models.tasks.tokenizers import write_tokenizers

NETWORK = tasks.get_network("translation")
SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
GLOVE = "the 0.5 -1 2\ndog 1 2 3\nParis 4 5 6\n. 7 8 9\n"


class Processor:
    """The methods of ``SentencePieceProcessor`` that are used."""

    def __init__(self, tokens):
        self.tokens = [*SPECIAL, *tokens]

    def vocab_size(self):
        return len(self.tokens)

    def id_to_piece(self, ids):
        return [self.tokens[i] for i in ids]


def write(path, text):
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def embedding(tokens, depth=3, **settings):
    layer = TokenEmbedding(len(SPECIAL) + len(tokens), depth, **settings)
    layer.build()
    return layer


def load(tmp_path, tokens, text=GLOVE, oov="random", **settings):
    """The report, the layer, and its table before and after."""
    layer = embedding(tokens, **settings)
    before = np.asarray(layer.table).copy()
    part = SimpleNamespace(embedding=layer)
    path = write(tmp_path / "vectors.txt", text)
    pretrained = TextEmbeddingsConfig(source=path, oov=oov)
    model = SimpleNamespace(encoder=part, decoder=None)
    report = pretrained_embeddings.load(model, NETWORK, pretrained, {"source": Processor(tokens)})
    return report["source"], layer, before, np.asarray(layer.table)


def test_matches_and_coverage(tmp_path):
    tokens = ["\u2581the", "dog", "\u2581Dog", "paris", "ing", "\u2581", "\u2581."]
    report, _, before, after = load(tmp_path, tokens)
    the, dog, paris, stop = [0.5, -1, 2], [1, 2, 3], [4, 5, 6], [7, 8, 9]
    for row, vector in {4: the, 5: dog, 6: dog, 7: paris, 10: stop}.items():
        np.testing.assert_array_equal(after[row], vector)
    vectors = np.array([the, dog, dog, paris, stop])
    others = [0, 1, 2, 3, 8, 9]
    factor = vectors.std() / before[others].std()
    np.testing.assert_allclose(after[others], before[others] * factor, rtol=1e-5)
    assert report == {
        "tokens": 6,  # without the mark alone
        "covered": 5,
        "share": 0.8333,
        "case_insensitive": 2,
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
def test_the_best_match_wins_in_any_order(tmp_path, text, expected):
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
def test_file_formats(tmp_path, text):
    if isinstance(text, str) and text.startswith(". ."):
        text = "x 9 9 9\n" + text  # the first row defines the size
    data = text if isinstance(text, bytes) else text.encode()
    for name in ("v.txt", "v.txt.gz"):
        result = pretrained_embeddings.find_vectors(
            [*SPECIAL, "a", "b"], write(tmp_path / name, data), 3
        )
        np.testing.assert_array_equal(result.vectors[4:], [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("the 1 2\n", ":1", "The vector has 2 numbers, but model.embedding is 3: 'the 1 2'"),
        ("the\n", ":1", "The vector has no numbers, but model.embedding is 3"),
        ("40 300\nthe 1 2 3\n", ":1", "The vector has 300 numbers, but model.embedding is 3"),
        ("the 1 2 3\na 1 2\n", ":2", "The vector has 2 numbers, but"),
        ("the 1 2 3\na 1\n", ":2", "The vector has 1 number, but"),
        ("the 1 2 3\na 1 2 3 4\n", ":2", "The vector has 4 numbers, but"),
        ("the 1 2 3\n\na 1 2 3\n", ":2", "The vector has no numbers, but"),
        ("the\t1\t2\t3\n", ":1", "The vector has no numbers, but"),
        ("the 1 2 x\n", ":1", "'x' is not a number"),
        ("a 0 0 0\nthe 1 nan 3\n", ":2", "'nan' is not a number"),
        ("3 3\nthe 1 2 3\na 1 2 3\n", "", "announces 3 words, but the file has 2"),
        ("der 1 2 3\n", "", "None of the 1 source tokens has a vector"),
        ("", "", "the file is empty"),
        (b"PK\x03\x04", "", "a zip archive"),
    ],
)
def test_invalid_files_are_refused(tmp_path, text, line, message):
    with pytest.raises(UserError) as error:
        load(tmp_path, ["\u2581the"], text)
    assert message in error.value.message
    assert error.value.where == f"{tmp_path / 'vectors.txt'}{line}"
    assert error.value.remedy


def test_missing_and_truncated_files_are_refused(tmp_path):
    with pytest.raises(UserError, match="cannot be read: No such file"):
        pretrained_embeddings.find_vectors([*SPECIAL, "a"], str(tmp_path / "none.txt"), 3)
    path = tmp_path / "cut.txt.gz"
    path.write_bytes(gzip.compress(os.urandom(4000).hex().encode())[:-20])
    with pytest.raises(UserError, match="truncated"):
        pretrained_embeddings.find_vectors([*SPECIAL, "a"], str(path), 3)


def test_a_scaled_embedding_outputs_the_vectors_of_the_file(tmp_path):
    _, layer, _, after = load(tmp_path, ["\u2581dog", "x"], scale=True)
    np.testing.assert_allclose(layer(np.array([[4]]))[0, 0], [1, 2, 3], rtol=1e-6)
    np.testing.assert_allclose(after[[0, 1, 2, 3, 5]].std(), after[4].std(), rtol=1e-5)


@pytest.mark.parametrize("trainable", [True, False])
def test_each_side_has_its_file_and_can_be_frozen(tmp_path, trainable):
    sides = {"source": ["\u2581dog"], "target": ["\u2581.", "\u2581the"]}
    layers = {side: embedding(tokens) for side, tokens in sides.items()}
    path = write(tmp_path / "v.txt", GLOVE)
    model = SimpleNamespace(
        encoder=SimpleNamespace(embedding=layers["source"]),
        decoder=SimpleNamespace(embedding=layers["target"]),
    )
    pretrained = TextEmbeddingsConfig(source=path, target=path, trainable=trainable)
    processors = {side: Processor(tokens) for side, tokens in sides.items()}
    reports = pretrained_embeddings.load(model, NETWORK, pretrained, processors)
    pretrained_embeddings.set_trainable(model, NETWORK, pretrained)
    assert {side: report["covered"] for side, report in reports.items()} == {
        "source": 1,
        "target": 2,
    }
    np.testing.assert_array_equal(layers["target"].table[4:], [[7, 8, 9], [0.5, -1, 2]])
    assert [len(layer.trainable_weights) for layer in layers.values()] == [trainable] * 2


def test_tokens_without_a_vector_can_start_as_zeros(tmp_path):
    _, _, before, after = load(tmp_path, ["\u2581the", "\u2581x"], oov="zero")
    np.testing.assert_array_equal(after[5], 0.0)
    assert before[5].any()
    assert after[4].any()


def test_an_embedding_can_have_more_rows_than_tokens(tmp_path):
    layer = TokenEmbedding(8, 3)
    layer.build()
    model = SimpleNamespace(encoder=SimpleNamespace(embedding=layer), decoder=None)
    path = write(tmp_path / "vectors.txt", GLOVE)
    pretrained = TextEmbeddingsConfig(source=path)
    processors = {"source": Processor(["\u2581the"])}
    report = pretrained_embeddings.load(model, NETWORK, pretrained, processors)
    assert report["source"]["tokens"] == 1
    assert np.asarray(layer.table)[5:].any()


def test_the_coverage_is_reported(tmp_path, monkeypatch):
    notes = []
    monkeypatch.setattr(
        pretrained_embeddings.events, "emit", lambda kind, **fields: notes.append(fields)
    )
    load(tmp_path, ["\u2581the", "\u2581Dog", "x"])
    text = "word vectors for 2 of 3 tokens of source (66.7%), 1 of them found by ignoring case"
    assert notes == [{"node": "Trainer", "text": text}]


@pytest.mark.parametrize(
    "encoder",
    [
        {"type": "recurrent", "units": 4},
        [{"type": "convolutional", "units": 4, "layers": 1}, {"type": "recurrent", "units": 4}],
    ],
    ids=["one encoder", "list of encoders"],
)
def test_a_real_model_gets_the_vectors_of_its_tokens(encoder, tmp_path):
    write_tokenizers(tmp_path)
    features = NETWORK.description.text_features
    processors = create_processors(read_sentencepiece_models(tmp_path, features))
    names = processors["source"].id_to_piece(list(range(4, processors["source"].vocab_size())))
    row = next(i for i, name in enumerate(names, 4) if name.startswith("\u2581") and name[1:])
    file = tmp_path / "vectors.txt"
    file.write_text(f"{names[row - 4][1:]} 1 2 3 4 5 6 7 8\n")
    pretrained = {"source": str(file), "trainable": False}
    values = {"embedding": 8, "encoder": encoder, "pretrained": pretrained}
    config = TextToTextModelConfig.model_validate(values)
    sizes = {side: processor.vocab_size() for side, processor in processors.items()}
    model = NETWORK.build(config, TrainingConfig(), sizes)
    report = pretrained_embeddings.load(model, NETWORK, config.pretrained, processors)
    np.testing.assert_allclose(model.encoder.embedding.table[row], np.arange(1.0, 9.0))
    assert report["source"]["covered"] >= 1
    pretrained_embeddings.set_trainable(model, NETWORK, config.pretrained)
    frozen = {weight.path for weight in model.non_trainable_weights}
    assert frozen == {model.encoder.embedding.table.path}
