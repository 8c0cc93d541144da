"""Protected spans of sources become symbols, and symbols the same spans."""

import re

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.models.protected_spans import LITERALS, SLOTS, symbol
from regard.models.settings.protect import NumberRule, ProtectConfig
from regard.models.tasks.protected_sources import protect_sources, restore
from tests.models.tasks.readable_symbols import ALL, readable

PIECES = [
    *("<b>", "</b>", "<i>", "</i>", "<br/>", "<a href='x'>", "</a>", "&amp;", "<", ">"),
    *(" ", "  ", "\n", ".", "a", "dog", "ä", "人", "7", "3.5", "{0}", "%s", "http://x.y/z?q=1"),
    *("me@x.org", "\u00a0", "\ufffd", "%", "{", "\t"),
]


def protected(*texts, config=ALL):
    sources = protect_sources(tf.constant(texts), config)
    return [readable(text.decode()) for text in sources.texts.numpy()], sources


@tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
def round_trip(texts):
    sources = protect_sources(texts, ALL)
    return restore(sources.texts, sources.literals)


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), max_size=5))
def test_restored_texts_are_the_texts(texts):
    results = round_trip(tf.constant(texts, tf.string, [len(texts)])).numpy()
    assert [text.decode() for text in results] == texts


@settings(deadline=None)
@given(st.lists(st.text(), max_size=3))
def test_any_text_is_restored_but_for_symbols(texts):
    results = round_trip(tf.constant(texts, tf.string, [len(texts)])).numpy()
    unusable = f"[\x1f{symbol(0)}-{symbol(SLOTS - 1)}]"
    assert [text.decode() for text in results] == [re.sub(unusable, "\ufffd", x) for x in texts]


def test_spans_are_numbered_in_their_order():
    texts, sources = protected("See http://a.b/c?d=1. 3.5 and 3.5, {0} %s me@x.org!")
    assert texts == ["See L0. L1 and L2, L3 L4 L5!"]
    literals = [text.decode() for text in sources.literals.numpy()[0] if text]
    assert literals == ["http://a.b/c?d=1", "3.5", "3.5", "{0}", "%s", "me@x.org"]


def test_opening_tags_stand_before_the_space_of_their_word():
    assert protected("A <b>dog</b>, <i>x</i>", "<b><i>Dog</i></b>", "un<b>do</b>ne")[0] == [
        "A<0 dog>0,<1 x>1",
        "<0<1 Dog>1>0",
        "un<0do>0ne",
    ]
    assert protected("<p></p>", "a <p></p> b", "<p> </p>")[0] == ["<0>0", "a <0>0 b", "<0>0"]


def test_tags_without_partner_are_literals_and_counted():
    texts, sources = protected("<b>x <i>y</b> z</i>", "<br> a </b>", "<B>x</b>")
    assert texts == ["<0 x L0y>0 zL1", "L0 a L1", "<0 x>0"]
    assert sources.faults.numpy().tolist() == [2, 1, 0]


def test_symbols_and_separators_in_a_text_are_replaced():
    texts, sources = protected(f"a {symbol(0)} \x1f 5")
    assert texts == ["a \ufffd \ufffd L0"]
    assert sources.literals.numpy()[0].tolist() == [b"5"] + [b""] * (SLOTS - 1)


def test_more_spans_than_symbols_stay_text():
    texts, _ = protected(" ".join(map(str, range(LITERALS + 3))))
    symbols = [f"L{i}" for i in range(LITERALS)]
    assert texts == [" ".join([*symbols, "16", "17", "18"])]


def test_a_million_tags():
    texts, sources = protected("<b>" * 10**5 + "x")
    assert texts[0].startswith("".join(f"L{i}" for i in range(LITERALS)) + "<b><b>")
    assert int(sources.faults[0]) == 128


def test_bytes_that_are_not_utf_8():
    sources = protect_sources(tf.constant([b"\xff 5 \xfe <b>x</b>"]), ALL)
    results = restore(sources.texts, sources.literals).numpy()
    assert results.tolist() == [b"\xff 5 \xfe <b>x</b>"]


def test_numbers_are_converted_by_rules():
    rules = [(r",", "#"), (r"\.", ","), ("#", ".")]
    rules = tuple(NumberRule(pattern=old, replacement=new) for old, new in rules)
    config = ProtectConfig(kinds=("numbers", "urls"), number_rules=rules)
    _, sources = protected("1,234.5 http://a.b", config=config)
    assert sources.literals.numpy()[0, :2].tolist() == [b"1.234,5", b"http://a.b"]


def test_own_patterns_come_before_other_kinds():
    config = ProtectConfig(kinds=("numbers",), patterns=("[A-Z]{2}-[0-9]+",))
    assert protected("AB-12 and 12", config=config)[0] == ["L0 and L1"]


@pytest.mark.parametrize("config", [ALL, ProtectConfig(kinds=("urls",))])
def test_no_texts(config):
    sources = protect_sources(tf.constant([], tf.string), config)
    assert sources.texts.shape == [0]
    assert not sources.has_spans
