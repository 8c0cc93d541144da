"""Training pairs have symbols for the spans of both sides."""

import re

import tensorflow as tf

from regard.models.protected_spans import LITERALS
from regard.models.settings.protect import ProtectConfig
from regard.models.tasks.protected_texts import protect_pairs
from tests.models.tasks.readable_symbols import ALL, KINDS, readable


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
