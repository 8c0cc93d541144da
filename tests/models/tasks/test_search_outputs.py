"""What a graph takes for a blank text."""

import random

import tensorflow as tf

from regard.core.characters import is_blank
from regard.models.tasks import text_preprocessing

CHARACTERS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def blank_in_graph(texts):
    return (
        text_preprocessing.is_blank(tf.constant([text.encode() for text in texts])).numpy().tolist()
    )


def test_a_graph_and_python_agree_on_every_character():
    expected = [is_blank(character) for character in CHARACTERS]
    assert blank_in_graph(CHARACTERS) == expected
    assert sum(expected) > 4000


def test_a_graph_and_python_agree_on_combinations():
    choose = random.Random(1)
    invisible = [character for character in CHARACTERS if is_blank(character)]
    parts = [choose.choices(invisible, k=choose.randint(0, 5)) for _ in range(20_000)]
    texts = ["".join(part) for part in parts]
    texts += ["".join([*part, choose.choice(CHARACTERS), *part[::-1]]) for part in parts]
    assert blank_in_graph(texts) == list(map(is_blank, texts))


def test_bytes_that_are_not_utf_8_are_as_blank_as_the_replacement_character():
    texts = tf.constant([b"\xff", b" \x80\xe3\x80", b"\xff a"])
    assert text_preprocessing.is_blank(texts).numpy().tolist() == [True, True, False]
