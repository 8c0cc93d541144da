from __future__ import annotations

import math

import numpy as np
import pytest

from models.metrics import METRICS, Rows, aligning, compute

# the house is small → das Haus ist klein, in pieces.
SOURCE = ["▁the", "▁hou", "se", "▁is", "▁small", "</s>"]
TARGET = ["▁das", "▁Ha", "us", "▁ist", "▁kl", "ein", "</s>"]
RIGHT = [0, 1, 2, 3, 4, 4, 5]
GOLD = "0-0 1-1 2-2 3-3"


def looks(at):
    return np.eye(len(SOURCE), dtype="float32")[at].tolist()


def rows(alignments, golds, source=SOURCE, target=TARGET):
    count = len(alignments)
    columns = {
        aligning.ALIGNMENT: alignments,
        aligning.SOURCE: [source] * count,
        aligning.TARGET: [target] * count,
        "links": golds,
    }
    return Rows(["das Haus ist klein"] * count, [["das Haus ist klein"]] * count, columns)


def rate(alignments, golds, unit="word", **sides):
    (found,) = compute(
        ["aer"], rows(alignments, golds, **sides), {"alignment": {"gold": "links", "unit": unit}}
    )
    return found


def test_right_links_have_no_error():
    found = rate([looks(RIGHT)], [GOLD])
    assert (found.value, found.signature) == (0.0, "unit:word|rows:1 of 1")
    assert not found.higher_is_better


def test_the_formula():
    # A = {0-0, 1-1, 3-2, 3-3}; S = {0-0, 1-1}; P = S + {3-2, 2-3}.
    at = [0, 1, 2, 4, 4, 4, 5]
    found = rate([looks(at)], ["0-0 1-1 3p2 2p3"])
    assert found.value == pytest.approx(1 - (2 + 3) / (4 + 2))


def test_rows_are_summed_and_not_averaged():
    wrong = [4, 4, 4, 0, 0, 0, 5]
    alone = [rate([looks(at)], [gold]).value for at, gold in ((RIGHT, GOLD), (wrong, "0-0"))]
    assert alone == [0.0, 1.0]
    both = rate([looks(RIGHT), looks(wrong)], [GOLD, "0-0"]).value
    assert both == pytest.approx(1 - (4 + 4) / (5 + 5))


def test_the_signature_says_whose_weights_they_are():
    asked = {"gold": "links", "unit": "word", "layer": 2, "head": None}
    for head, told in ((None, "unit:word|layer:2|"), (3, "unit:word|layer:2|head:3|")):
        options = {"alignment": {**asked, "head": head}}
        (found,) = compute(["aer"], rows([looks(RIGHT)], [GOLD]), options)
        assert found.signature == f"{told}rows:1 of 1"


def test_what_has_no_gold_link_does_not_count():
    assert rate([looks([0, 1, 2, 0, 0, 0, 5])], ["0-0 1-1"]).value == 0.0


def test_weights_of_a_words_pieces_count_together():
    weights = np.zeros((7, 6))
    weights[0] = [0.4, 0.3, 0.3, 0, 0, 0]  # "house" has 0.6 in its two pieces
    weights[1] = weights[2] = [1, 0, 0, 0, 0, 0]
    assert rate([weights.tolist()], ["1-0"]).value == 0.0
    weights[1], weights[2] = [0.9, 0, 0, 0.1, 0, 0], [0, 0, 0, 0.7, 0.3, 0]
    assert rate([weights.tolist()], ["0-1"]).value == 0.0  # 0.45 beside 0.40
    weights[0] = [0, 0, 0, 0, 0, 1.0]  # all on the end of sentence: no link
    assert rate([weights.tolist()], ["0-0"]).value == 1.0


def test_characters():
    source, target = ["▁", "2", "0", "▁", "N", "o", "v", "</s>"], ["1", "1", "-", "20", "</s>"]
    weights = np.zeros((5, 8))
    weights[[0, 1, 2, 3], [4, 5, 3, 1]] = 1.0
    # "20 Nov" → "11-20": the piece "20" is of its first character.
    gold = "3p0 4p0 5p0 3p1 4p1 5p1 0-3"
    found = rate([weights.tolist()], [gold], "character", source=source, target=target)
    assert (found.value, found.signature) == (0.0, "unit:character|rows:1 of 1")


def test_texts_that_are_not_those_of_the_gold_are_left_out():
    found = rate([looks(RIGHT), looks(RIGHT), looks(RIGHT)], [GOLD, "9-0", ""])
    assert (found.value, found.signature) == (0.0, "unit:word|rows:1 of 3")
    nothing = rate([looks(RIGHT)], ["7-7"])
    assert math.isnan(nothing.value)
    assert nothing.signature.endswith("undefined:no links")


def test_a_model_that_shows_nothing_has_no_rate():
    without = Rows(["a"], [["a"]], {"links": ["0-0"]})
    options = {"alignment": {"gold": "links", "unit": "word"}}
    (found,) = compute(["aer"], without, options)
    assert math.isnan(found.value)


def test_what_is_wrong_is_told():
    with pytest.raises(ValueError, match="'0:0' is no link such as 0-0 or 2p3"):
        rate([looks(RIGHT)], ["0:0"])
    with pytest.raises(ValueError, match=r"needs evaluation\.alignment"):
        compute(["aer"], rows([looks(RIGHT)], [GOLD]))


def test_the_statistics_sum_up_to_it():
    options = {"alignment": {"gold": "links", "unit": "word"}}
    some = rows([looks(RIGHT), looks([0, 0, 0, 3, 0, 0, 5]), looks(RIGHT)], [GOLD, GOLD, "9-9"])
    found = METRICS["aer"].statistics(some, options)
    assert found.rows.tolist() == [[4, 4, 4, 4], [2, 2, 4, 4], [0, 0, 0, 0]]
    assert found.whole() == pytest.approx(1 - (6 + 6) / (8 + 8))
    assert found.signature == "unit:word|rows:2 of 3"
    assert found.rows.tolist()[2] == [0, 0, 0, 0]
