"""The served translation: raw text in, raw text out, saved and loaded."""

import io

import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from components.trainer.export import export, read_tokenizers
from models import tasks

SENTENCES = ["a cat sat", "the dog ran far away", "", "a", "unseen ☃ words", "x " * 300]
CONFIG = {
    "model": {
        "embedding": 8,
        "dropout": 0.1,
        "encoder": {"type": "recurrent", "units": 8},
        "decoder": {"type": "recurrent", "units": 8},
        "attention": {"score": "general", "alignment": "soft"},
    },
    "training": {"precision": "float32", "label_smoothing": 0.1},
    "search": {
        "type": "beam",
        "beam_size": 3,
        "length_penalty": 0.6,
        "max_length_factor": 2.0,
        "max_length_offset": 4,
        "max_source_length": 20,
    },
}


def train_tokenizer(lines, pieces):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=pieces,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    source = ["a cat sat on the mat", "the dog ran far away from home"] * 20
    target = ["eine Katze", "der Hund lief weit weg"] * 20
    (folder / "source.model").write_bytes(train_tokenizer(source, 40))
    (folder / "target.model").write_bytes(train_tokenizer(target, 30))
    return folder


@pytest.fixture(scope="module")
def in_memory(folder):
    keras.utils.set_random_seed(3)
    task = tasks.get("translation")
    tokenizers = read_tokenizers(folder, task.text_features)
    pieces = {name: int(t.vocab_size()) for name, t in tokenizers.items()}
    model = task.build(CONFIG["model"], CONFIG["training"], pieces)
    for weight in model.weights:
        weight.assign(weight * 3.0)
    export(model, task, CONFIG, tokenizers, folder / "saved")
    module, _ = task.served(model, tokenizers, CONFIG["search"])
    return model, module, tokenizers


@pytest.fixture(scope="module")
def loaded(folder, in_memory):
    return tf.saved_model.load(str(folder / "saved"))


@pytest.mark.parametrize("signature", ["serving_default", "align"])
def test_exported_equals_in_memory(in_memory, loaded, signature):
    _, module, _ = in_memory
    function = {"serving_default": module.translate, "align": module.align}[signature]
    expected = function(tf.constant(SENTENCES))
    found = loaded.signatures[signature](source=tf.constant(SENTENCES))
    assert set(found) == set(expected)
    for name, value in expected.items():
        if value.dtype == tf.string:
            assert found[name].numpy().tolist() == value.numpy().tolist()
        else:
            np.testing.assert_allclose(found[name], value, atol=1e-5)


def test_two_tokenizers_stay_two(in_memory, loaded):
    """Resources without names of their own become one when a model is loaded."""
    _, _, tokenizers = in_memory
    found = loaded.signatures["align"](source=tf.constant(["the dog ran"]))
    pieces = tokenizers["source"].id_to_string(tokenizers["source"].tokenize(["the dog ran"]))
    length = int(found["source_length"][0])
    assert found["source_pieces"][0, : length - 1].numpy().tolist() == pieces[0].numpy().tolist()
    vocabulary = {
        tokenizers["target"].id_to_string(i).numpy()
        for i in range(int(tokenizers["target"].vocab_size()))
    }
    assert set(found["target_pieces"].numpy().ravel()) <= vocabulary


def test_batched_is_one_by_one(loaded):
    serve = loaded.signatures["serving_default"]
    together = serve(source=tf.constant(SENTENCES))
    for row, sentence in enumerate(SENTENCES):
        alone = serve(source=tf.constant([sentence]))
        assert alone["translation"][0] == together["translation"][row]
        assert float(alone["score"][0]) == pytest.approx(float(together["score"][row]), abs=1e-4)


def test_score_is_the_forced_score_of_the_answer(in_memory, loaded):
    model, _, tokenizers = in_memory
    found = loaded.signatures["align"](source=tf.constant(SENTENCES[:2]))
    for row, sentence in enumerate(SENTENCES[:2]):
        source = tokenizers["source"].tokenize(sentence).numpy().tolist()
        source.append(3)
        length = int(found["target_length"][row])
        pieces = found["target_pieces"][row, :length]
        target = [int(tokenizers["target"].string_to_id(p)) for p in pieces]
        forced = model.score(np.array([source], "int32"), np.array([target], "int32"))
        assert float(found["score"][row]) == pytest.approx(float(forced[0]), abs=1e-4)


def test_alignments_are_distributions_over_the_real_source(loaded):
    found = loaded.signatures["align"](source=tf.constant(SENTENCES))
    alignment = found["alignment"].numpy()
    assert alignment.dtype == np.float32
    for row in range(len(SENTENCES)):
        target, source = int(found["target_length"][row]), int(found["source_length"][row])
        np.testing.assert_allclose(alignment[row, :target, :source].sum(-1), 1.0, atol=1e-4)
        assert (alignment[row, target:] == 0).all()
        assert (alignment[row, :, source:] == 0).all()


def test_long_sources_are_cut_at_the_limit(loaded):
    found = loaded.signatures["align"](source=tf.constant(SENTENCES))
    assert int(found["source_length"][5]) == CONFIG["search"]["max_source_length"] + 1
    assert (found["target_length"].numpy() <= 2 * 20 + 4 + 1).all()


def test_preprocessing_gives_ids_and_lengths(in_memory):
    _, _, tokenizers = in_memory
    inputs = {
        "source": tf.constant([["a cat"], ["the dog"]]),
        "target": tf.sparse.from_dense([["eine"], ["der Hund"]]),
    }
    found = tasks.get("translation").preprocess(inputs, tokenizers)
    for side, texts in (("source", ["a cat", "the dog"]), ("target", ["eine", "der Hund"])):
        expected = tokenizers[side].tokenize(texts)
        assert found[f"{side}_ids"].to_list() == expected.to_list()
        assert found[f"{side}_length"].numpy().tolist() == [len(r) for r in expected.to_list()]


def test_an_unknown_task_is_refused():
    with pytest.raises(ValueError, match=r"translashun.*Choices: translation"):
        tasks.get("translashun")
