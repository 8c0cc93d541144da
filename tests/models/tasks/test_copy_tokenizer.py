"""Copied words that the vocabulary lacks, from the text to the exported model."""

import pytest
import tensorflow as tf
import tensorflow_text

from regard.components.settings.trainer import TrainerConfig
from regard.models import tasks
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.copy_tokenizer import CopyTokenizer, detokenize
from regard.models.tasks.text_to_text.settings import TextPreprocessingConfig, TextToTextModelConfig
from tests.marks import slow
from tests.models.tasks.exported import (
    assert_equal_outputs,
    build,
    save_signatures,
    servable,
    served,
)
from tests.models.tasks.task_parts import module_of, one_row
from tests.models.tasks.tokenizers import trained
from tests.tolerances import assert_close

LINES = ["the man saw a dog", "a dog and the cat ran", "who saw the man", "of the and to"]
SMALL = {"layers": 1, "heads": 2, "feed_forward": 8}
SOURCES = ["Жора saw Bob Жора the QQ", "", "a dog", "Ñandú ran"]
COPIES = TextPreprocessingConfig(copies=True)


def tokenizer(kind):
    size = 14 if kind == "word" else 30
    model = trained(LINES, model_type=kind, vocab_size=size)
    return tensorflow_text.SentencepieceTokenizer(model, out_type=tf.int32)


@pytest.mark.parametrize("kind", ["word", "char", "bpe", "unigram"])
def test_unknown_words_come_back(kind):
    plain = tokenizer(kind)
    copying = CopyTokenizer.from_sources(plain, tf.constant(SOURCES))
    size = int(plain.vocab_size())
    texts = ["the Жора QQ Жора", "a dog", "dog", "the man Ñandú"]
    ids = copying.tokenize(tf.constant(texts))
    assert [x.decode() for x in copying.detokenize(ids).numpy()] == texts
    rows = ids.to_list()
    assert max(rows[0]) >= size
    assert max(rows[3]) >= size
    assert max(rows[1]) < size
    known = copying.tokenize(tf.constant(["of the man"] * 4))
    assert known.to_list() == plain.tokenize(["of the man"] * 4).to_list()
    # Unknown in the source of another row only.
    other = copying.tokenize(tf.constant(["a dog", "Жора", "QQ", "Жора"]))
    assert all(1 in row and max(row) < size for row in other.to_list()[1:])


def test_adjacent_unknown_words_are_two_tokens():
    copying = CopyTokenizer.from_sources(tokenizer("word"), tf.constant(["Bob Жора saw", "QQ"]))
    size = int(tokenizer("word").vocab_size())
    ids = copying.tokenize(tf.constant(["Жора Bob", "QQ Bob"]))
    assert ids.to_list() == [[size + 1, size], [size, 1]]


def test_thousands_of_unknown_words():
    """A comparison of each token with each unknown one would need about 8 GB."""
    texts = tf.constant([" ".join(f"u{i}" for i in range(4000))] * 20)
    copying = CopyTokenizer.from_sources(tokenizer("word"), texts)
    ids = copying.tokenize(texts).to_list()
    size = int(tokenizer("word").vocab_size())
    assert ids == [list(range(size, size + 4000))] * 20


def test_what_is_after_the_limit_is_not_copied():
    copying = CopyTokenizer.from_sources(tokenizer("word"), tf.constant(["the man Bob QQ"]), 3)
    size = int(tokenizer("word").vocab_size())
    assert copying.tokenize(tf.constant(["QQ Bob"])).to_list() == [[1, size]]


def test_preprocessing_of_several_references():
    plain = tokenizer("word")
    tokenizers = {"source": plain, "target": plain}
    inputs = {
        "source": tf.constant([["Bob saw QQ"], ["QQ ran"]]),
        "target": tf.sparse.from_dense([["QQ saw", "Bob"], ["Bob", "QQ ran"]]),
    }
    task, size = tasks.get_preprocessing("summarisation"), int(plain.vocab_size())
    result = task.transform(inputs, tokenizers, COPIES)
    saw, ran = plain.tokenize(["saw", "ran"]).flat_values.numpy()
    assert result["source_ids"].to_list() == [[size, saw, size + 1], [size, ran]]
    assert result["target_ids"].to_list() == [[size + 1, saw, size], [1, size, ran]]
    plain_ids = task.transform(inputs, tokenizers, TextPreprocessingConfig(copies=False))
    assert plain_ids["target_ids"].to_list() == [[1, saw, 1], [1, 1, ran]]
    # While training there is no source text: equal tokens have equal placeholders.
    ids = tf.ragged.constant([[size + 1, saw], [size, ran, size]], dtype=tf.int32)
    assert detokenize(plain, ids).numpy().tolist() == [b"copy1 saw", b"copy0 ran copy0"]
    module = module_of("summarisation", tokenizers=tokenizers)
    assert b"saw" in module.raw_inputs(one_row(result))["source"]


DECODERS = {
    "transformer": {"type": "transformer", **SMALL, "pointer_generator": True},
    "luong": {"type": "luong", "units": 8, "pointer_generator": True},
}
SEARCHES = {
    "beam": {"type": "beam", "beam_size": 4, "n_best": 2},
    "sampling": {"type": "sampling", "samples": 4, "top_k": 3},
    "greedy": {"type": "greedy"},
}


def created(folder, decoder, search):
    """A model that only copies."""
    config = TrainerConfig(
        task="translation",
        model=TextToTextModelConfig(
            embedding=8, dropout=0.0, encoder={"units": 4}, decoder=DECODERS[decoder]
        ).model_dump(),
        training=TrainingConfig().model_dump(),
        search={**SEARCHES[search], "max_source_length": 20, "min_length_factor": 1.0},
    )
    for side in ("source", "target"):
        path = folder / f"{side}.model"
        path.write_bytes(trained(LINES, model_type="word", vocab_size=14))
    model, tokenizers = build(folder, config, seed=5)
    model.decoder.copying.gate.bias.assign([-30.0])
    translator = served(folder, config, model, tokenizers, save=False)
    names = {"serving_default", "align", "score", "nbest", "constrained"}
    save_signatures(translator, names & set(translator.signatures), folder / "saved")
    return translator


@pytest.mark.parametrize(
    ("decoder", "search"),
    [("transformer", "greedy"), slow("luong", "sampling"), slow("transformer", "beam")],
)
def test_an_exported_model_copies_unknown_words(decoder, search, tmp_path):
    module = created(tmp_path, decoder, search).module
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    assert servable(tmp_path / "saved")
    outputs = loaded.signatures["align"](source=tf.constant(SOURCES))
    assert_equal_outputs(outputs, module.align(tf.constant(SOURCES)))
    texts = [text.decode() for text in outputs["translation"].numpy()]
    for text, source in zip(texts, SOURCES, strict=True):
        assert set(text.split()) <= set(source.split())
    assert texts[3]
    assert set(texts[0].split()) & {"Жора", "Bob", "QQ"}
    pieces = outputs["source_pieces"].numpy()[3, :3].tolist()
    assert [x.decode() for x in pieces] == ["▁Ñandú", "▁ran", "</s>"]
    # A batch of one has the same output, and a given text the score that the search gave it.
    alone = loaded.signatures["serving_default"](source=tf.constant(SOURCES[3:]))
    assert alone["translation"].numpy().tolist() == [texts[3].encode()]
    scored = loaded.signatures["score"](
        source=tf.constant(SOURCES[3:]), target=outputs["translation"][3:]
    )
    assert_close(scored["score"], outputs["score"][3:], roundings=1000)
    if search != "greedy":
        several = loaded.signatures["nbest"](source=tf.constant(SOURCES))["hypotheses"]
        assert several[0, 0].numpy().decode() == texts[0]
        words = {word for text in several[3].numpy() for word in text.decode().split()}
        assert words <= {"Ñandú", "ran"}
    # A phrase of the constraints can be an unknown word of the source.
    constrained = loaded.signatures["constrained"](
        source=tf.constant(SOURCES[:1]), prefix=tf.constant(["QQ"]), phrases=tf.constant(["Bob"])
    )["translation"][0].numpy()
    assert constrained.decode().startswith("QQ")
    assert "Bob" in constrained.decode()
