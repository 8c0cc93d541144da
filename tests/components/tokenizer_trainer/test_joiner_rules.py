"""Joiners between letters stay, and nothing else changes."""

import io
import random

import pytest
import sentencepiece
import tensorflow as tf
import tensorflow_text

from regard.components.settings.tokenizer import TokenizerConfig
from regard.components.tokenizer_trainer.joiner_rules import decode_rules, joiner_rules
from regard.components.tokenizer_trainer.sentencepiece_training import parse_model, train_tokenizer

PERSIAN = ["می‌خواهم کتاب‌ها را بخوانم", "نمی‌دانم چه می‌گویی", "خانه‌ای در آن‌جا"] * 20
CHARACTERS = [chr(code) for code in range(1, 0x20000) if not 0xD800 <= code < 0xE000]


def rules_of(name):
    normalizer = sentencepiece.SentencePieceNormalizer(rule_name=name)
    return parse_model(normalizer.serialized_model_proto()).normalizer_spec.precompiled_charsmap


@pytest.fixture(scope="module")
def trained():
    config = TokenizerConfig(vocab_size=60)
    return train_tokenizer([text.encode() for text in PERSIAN], config, keep_joiners=True)


def test_only_the_rules_of_joiners_differ():
    rules = decode_rules(rules_of("nmt_nfkc"))
    assert (rules["…"], rules["ﬁ"], rules["\u200b"], rules["e\u0301"]) == ("...", "fi", " ", "é")
    assert rules["\u200c"] == " "
    assert len(rules) > 200_000
    changed = joiner_rules(rules_of("nmt_nfkc"))
    assert all("\u200c" in key for key in rules.keys() ^ changed.keys())
    assert {key: changed[key] for key in rules if key in changed} == {
        key: value for key, value in rules.items() if key in changed
    }


def test_texts_without_joiners_are_normalised_as_before(trained):
    before = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc")
    after = sentencepiece.SentencePieceNormalizer(model_proto=trained.proto)
    others = [character for character in CHARACTERS if character != "\u200c"]
    choose = random.Random(3)
    texts = others + ["".join(choose.choices(others, k=12)) for _ in range(2_000)]
    marks = [c for c in others if "\u0300" <= c <= "\u036f" or "\u1100" <= c <= "\u11ff"]
    texts += [choose.choice(others) + "".join(choose.choices(marks, k=3)) for _ in range(2_000)]
    assert [after.normalize(text) for text in texts] == [before.normalize(text) for text in texts]


def test_joiners_between_letters_stay_in_every_tokenizer(trained):
    processor = sentencepiece.SentencePieceProcessor(model_proto=trained.proto)
    assert processor.decode(processor.encode(PERSIAN)) == PERSIAN
    in_graph = tensorflow_text.SentencepieceTokenizer(trained.proto, out_type=tf.int32)
    texts = in_graph.detokenize(in_graph.tokenize(PERSIAN)).numpy().tolist()
    assert [text.decode() for text in texts] == PERSIAN


@pytest.mark.parametrize("place", ["می‌ خواهم", "می ‌خواهم", "می ‌‌ خواهم", "می‌‌ خواهم"])
def test_joiners_that_join_nothing_are_spaces(trained, place):
    after = sentencepiece.SentencePieceNormalizer(model_proto=trained.proto)
    assert after.normalize(place) == after.normalize("می خواهم")
    assert after.normalize("می‌‌‌خواهم") == after.normalize("می‌خواهم")


@pytest.mark.parametrize(
    ("name", "punctuation"),
    [
        ("nmt_nfkc", "keep"),
        ("nmt_nfkc", "split"),
        ("nmt_nfkc_cf", "split"),
        ("nfkc", "keep"),
        ("identity", "keep"),
        ("identity", "split"),
    ],
)
def test_each_set_of_rules_keeps_joiners(name, punctuation):
    config = TokenizerConfig(vocab_size=60, normalization=name, punctuation=punctuation)
    lines = [text.encode() for text in PERSIAN]
    tokenizer = train_tokenizer(lines, config, keep_joiners=True)
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.proto)
    assert processor.decode(processor.encode("نمی‌دانم")) == "نمی‌دانم"


def test_the_default_rules_stay_for_texts_without_joiners():
    lines = [b"a cat sat on the mat", b"the dog ran far away"] * 20
    tokenizer = train_tokenizer(lines, TokenizerConfig(vocab_size=40))
    buffer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=buffer,
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    specs = [parse_model(p).normalizer_spec for p in (tokenizer.proto, buffer.getvalue())]
    assert specs[0] == specs[1]
