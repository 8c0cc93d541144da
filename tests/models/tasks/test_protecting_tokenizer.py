"""Protected spans become symbols, and symbols the same spans."""

import re

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.models.protected_spans import CLOSE, LITERALS, OPEN, PAIRS, SLOTS, symbol
from regard.models.settings.protect import NumberRule, ProtectConfig
from regard.models.tasks.protecting_tokenizer import protect_pairs, protect_sources, restore
from regard.models.tasks.span_finding import match_pairs

KINDS = ("urls", "emails", "numbers", "markup", "placeholders")
ALL = ProtectConfig(kinds=KINDS)
PIECES = [
    *("<b>", "</b>", "<i>", "</i>", "<br/>", "<a href='x'>", "</a>", "&amp;", "<", ">"),
    *(" ", "  ", "\n", ".", "a", "dog", "ä", "人", "7", "3.5", "{0}", "%s", "http://x.y/z?q=1"),
    *("me@x.org", "\u00a0", "\ufffd", "%", "{", "\t"),
]


def readable(text):
    """A protected text with names for symbols: L0, <0 and >0."""
    names = {symbol(i): f"L{i}" for i in range(LITERALS)}
    names |= {symbol(OPEN + i): f"<{i}" for i in range(PAIRS)}
    names |= {symbol(CLOSE + i): f">{i}" for i in range(PAIRS)}
    return "".join(names.get(letter, letter) for letter in text)


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


def pairs(source, *targets, config=ALL):
    sources, references = protect_pairs(
        tf.constant([source]), tf.ragged.constant([list(targets)], dtype=tf.string), config
    )
    texts = [sources.numpy()[0], *references.values.numpy()]
    # The first number depends on the text.
    letters = [re.sub(r"(?<=[L<>])[0-9]+", "", readable(text.decode())) for text in texts]
    return letters, [readable(text.decode()) for text in texts]


def test_training_texts_have_symbols_for_spans_of_both_sides():
    letters, texts = pairs("A <b>dog</b> runs 5 km to x.y 7", "In 7 Tagen <b>ein Hund</b> x 4")
    assert letters == ["A< dog> runs 5 km to x.y L", "In L Tagen< ein Hund> x 4"]
    numbers = [sorted(re.findall(r"[L<>][0-9]+", text)) for text in texts]
    assert numbers[0] == numbers[1]


def test_equal_spans_correspond_in_their_order():
    letters, texts = pairs("5 and 5", "5 und 5 und 5")
    assert letters == ["L and L", "L und L und 5"]
    assert re.findall("L[0-9]+", texts[0]) == re.findall("L[0-9]+", texts[1])


def test_all_targets_need_a_span():
    assert pairs("5 and 6", "5, 6", "6")[0] == ["5 and L", "5, L", "L"]


def test_rows_without_targets_stay_text():
    assert pairs("5 and <b>x</b>")[0] == ["5 and <b>x</b>"]


def test_training_texts_without_what_attention_places():
    config = ProtectConfig(kinds=KINDS, placement="attention")
    letters, _ = pairs("A <b>dog</b> {0} runs 5</p>", "Ein <b>Hund</b> 5</p>", config=config)
    assert letters == ["A dog  runs LL", "Ein Hund LL"]


def test_all_symbols_are_trained():
    sources = tf.constant([f"x{i} 5" for i in range(400)])
    targets = tf.RaggedTensor.from_row_lengths(sources, [1] * 400)
    texts = protect_pairs(sources, targets, ALL)[0].numpy()
    first = [readable(text.decode()).split()[1] for text in texts]
    assert set(first) == {f"L{i}" for i in range(LITERALS)}
    assert first.count("L0") > 150


def partners(tags):
    """The pairs of a sequence of tags, by a stack."""
    result, stack = [-1] * len(tags), []
    for place, (sign, name) in enumerate(tags):
        if sign > 0:
            stack.append(place)
        elif any(tags[other][1] == name for other in stack):
            while tags[(other := stack.pop())][1] != name:
                pass
            result[place], result[other] = other, place
    return result


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from([1, -1]), st.integers(0, 2)), min_size=1, max_size=12))
def test_pairs_of_tags(tags):
    signs, names = (tf.constant([[tag[i] for tag in tags]]) for i in (0, 1))
    assert match_pairs(signs, names).numpy()[0].tolist() == partners(tags)


@pytest.mark.parametrize("config", [ALL, ProtectConfig(kinds=("urls",))])
def test_no_texts(config):
    sources = protect_sources(tf.constant([], tf.string), config)
    assert sources.texts.shape == [0]
    assert not sources.has_spans
