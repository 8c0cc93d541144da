"""Served tokens of unknown words can be grouped to the words of the text."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text

from regard.components.settings.trainer import TrainerConfig
from regard.models.metrics import GoldAlignment, MetricOptions, Rows, attention, compute
from regard.models.metrics.attention import _unit_of_tokens
from regard.models.tasks.copy_tokenizer import CopyTokenizer, token_strings
from tests.marks import slow_except
from tests.models.tasks.exported import build, config, served
from tests.models.tasks.tokenizers import trained

LINES = ["the man saw a dog .", "a dog and the cat ran", "who saw the man , a cat ?"]
SIZES = {"word": 17, "unigram": 30, "bpe": 35, "char": 24}
SEARCH = {"type": "greedy", "max_source_length": 60}
# Unknown words, or characters, at the beginning, in the middle, at the end, next to each other,
# joined to punctuation, and inside of a word.
TEXTS = [
    "Жора saw the man",
    "the Жора saw a dog",
    "a dog saw Жора",
    "the Жора Ñandú saw Ñandú Жора",
    "the (Жора), saw a dog.",
    "Жора? the cat",
    "a daЖog ran , caÑt Ж",
    "the man",
    "",
]


def model(kind):
    return trained(LINES, model_type=kind, vocab_size=SIZES[kind])


def create(kind):
    return tensorflow_text.SentencepieceTokenizer(model(kind), out_type=tf.int32)


def write_models(folder, kind):
    for side in ("source", "target"):
        (folder / f"{side}.model").write_bytes(model(kind))


def check_words(text, tokens):
    """The tokens of a text are as many words as the text, and contain the same characters."""
    units, count = _unit_of_tokens(tokens, "word")
    assert count == len(text.split())
    assert units[-1] == -1
    assert "".join(tokens[:-1]).replace("▁", " ").split() == text.split()
    begun = [token.count("▁") for token in tokens[:-1]]
    expected = np.cumsum([0, *begun])[:-1] + [bool(x.startswith("▁")) for x in tokens[:-1]] - 1
    assert units[:-1] == expected.tolist()


@pytest.mark.parametrize("kind", slow_except(("word", "bpe"), SIZES))
def test_tokens_of_given_texts(kind, tmp_path):
    write_models(tmp_path, kind)
    settings = TrainerConfig(task="translation", **config(search=SEARCH))
    module = served(tmp_path, settings, *build(tmp_path, settings, 3), save=False).module
    outputs = module.score(tf.constant(TEXTS), tf.constant(TEXTS[::-1]))
    for side, texts in (("source", TEXTS), ("target", TEXTS[::-1])):
        rows, lengths = outputs[f"{side}_pieces"].numpy(), outputs[f"{side}_length"].numpy()
        for text, row, length in zip(texts, rows, lengths, strict=True):
            check_words(text, [token.decode() for token in row[:length]])
    if kind == "word":
        sources = module.align(tf.constant(TEXTS[3:4]))["source_pieces"].numpy()[0].tolist()
        assert sources == outputs["source_pieces"].numpy()[3, : len(sources)].tolist()
    heads = module.heads(tf.constant(TEXTS), tf.constant(TEXTS))
    shifted = heads["read_pieces"].numpy()
    assert set(shifted[:, 0]) == {b"<s>"}
    mask = np.arange(1, shifted.shape[1]) < heads["target_length"].numpy()[:, None]
    assert (shifted[:, 1:] == heads["target_pieces"].numpy()[:, :-1])[mask].all()


@pytest.mark.parametrize(("kind", "unknown"), [("word", b"\xe2\x96\x81<unk>"), ("bpe", b"<unk>")])
def test_an_unknown_token_of_an_output_begins_a_word_if_all_tokens_do(kind, unknown):
    tokenizer = create(kind)
    known = tokenizer.string_to_id("▁the")
    tokens = token_strings(tokenizer, tf.stack([[known, 1], [1, known]]))
    assert tokens.numpy().tolist() == [["▁the".encode(), unknown], [unknown, "▁the".encode()]]
    copying = CopyTokenizer.from_sources(tokenizer, tf.constant(["Жора saw"]))
    assert token_strings(copying, tf.constant([[1]])).numpy().tolist() == [[unknown]]


@pytest.mark.parametrize("kind", ["word", "char"])
def test_tokens_of_a_copying_model(kind):
    """Known words of the source, and others, in one text."""
    copying = CopyTokenizer.from_sources(create(kind), tf.constant(["Жора saw the man"]))
    text = tf.constant(["Ñ Жора Ñandú the"])
    ids = copying.tokenize(text).to_tensor()
    tokens = [token.decode() for token in token_strings(copying, ids, text)[0].numpy()]
    assert "".join(tokens) == "▁Ñ▁Жора▁Ñandú▁the"
    assert (1 in ids.numpy(), int(tf.reduce_max(ids)) >= copying.tokenizer.vocab_size()) == (
        True,
        True,
    )


def error_rate(source, target, weights, gold, unit="word"):
    values = {attention.ALIGNMENT: weights, attention.SOURCE: source, attention.TARGET: target}
    columns = {name: [value] for name, value in {**values, "links": gold}.items()}
    options = MetricOptions(alignment=GoldAlignment("links", unit))
    (metric,) = compute(["aer"], Rows(["x"], [["x"]], columns), options)
    return metric.value, metric.signature


def test_error_rate_with_several_unknown_words_in_a_token():
    """Links of words without a token of their own are missed; those after them are right."""
    source = ["▁xyz7▁abc8", "▁the", "▁house", "</s>"]
    target = ["▁la", "▁maison", "▁qq▁ww", "</s>"]
    weights = np.eye(4)[[1, 2, 0, 3]]
    # A = {2-0, 3-1, 0-2}, S = {2-0, 3-1, 0-2, 1-3}.
    value, signature = error_rate(source, target, weights, "2-0 3-1 0-2 1-3")
    assert value == pytest.approx(1 - 6 / 7)
    assert signature == "unit:word|targets:all|rows:1 of 1"
    assert error_rate(source, target, weights, "2-4")[1].startswith("unit:word|targets:all|rows:0")


def test_error_rate_of_characters_in_a_last_token_of_several():
    value, signature = error_rate(["▁", "a"], ["▁", "20"], np.eye(2), "0-0 0-1", "character")
    assert value == pytest.approx(1 - 2 / 3)
    assert "rows:1 of 1" in signature
