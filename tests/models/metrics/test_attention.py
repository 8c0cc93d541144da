import dataclasses
import json
import math

import numpy as np
import pytest

from regard.models.metrics import GoldAlignment, MetricOptions, Rows, attention, compute
from tests.models import reference

# the house is small → das Haus ist klein, as tokens.
SOURCE = ["▁the", "▁hou", "se", "▁is", "▁small", "</s>"]
TARGET = ["▁das", "▁Ha", "us", "▁ist", "▁kl", "ein", "</s>"]
RIGHT = [0, 1, 2, 3, 4, 4, 5]
GOLD = "0-0 1-1 2-2 3-3"


def one_hot(targets):
    return np.eye(len(SOURCE), dtype="float32")[targets].tolist()


def rows(alignments, golds, source=SOURCE, target=TARGET):
    count = len(alignments)
    columns = {
        attention.ALIGNMENT: alignments,
        attention.SOURCE: [source] * count,
        attention.TARGET: [target] * count,
        "links": golds,
    }
    return Rows(["das Haus ist klein"] * count, [["das Haus ist klein"]] * count, columns)


def rate(alignments, golds, unit="word", targets="all", **sides):
    (metric,) = compute(
        ["aer"],
        rows(alignments, golds, **sides),
        MetricOptions(alignment=GoldAlignment("links", unit, targets)),
    )
    return metric


def test_correct_links_have_no_error():
    metric = rate([one_hot(RIGHT)], [GOLD])
    assert (metric.value, metric.signature) == (0.0, "unit:word|targets:all|rows:1 of 1")
    assert not metric.higher_is_better


def test_the_error_rate_follows_the_paper():
    weights = one_hot([0, 1, 2, 4, 4, 4, 5])
    metric = rate([weights], ["0-0 1-1 3p2 2p3"])
    links, sure = {(0, 0), (1, 1), (3, 2), (3, 3)}, {(0, 0), (1, 1)}
    expected = reference.alignment_error_rate(links, sure, sure | {(3, 2), (2, 3)})
    assert expected == pytest.approx(1 - (2 + 3) / (4 + 2))
    assert metric.value == pytest.approx(expected)


def test_rows_are_summed_and_not_averaged():
    wrong = [4, 4, 4, 0, 0, 0, 5]
    alone = [
        rate([one_hot(links)], [gold], targets="gold").value
        for links, gold in ((RIGHT, GOLD), (wrong, "0-0"))
    ]
    assert alone == [0.0, 1.0]
    both = rate([one_hot(RIGHT), one_hot(wrong)], [GOLD, "0-0"], targets="gold").value
    assert both == pytest.approx(1 - (4 + 4) / (5 + 5))


def test_the_signature_names_layer_and_head():
    settings = GoldAlignment("links", layer=2)
    for head, prefix in (
        (None, "unit:word|targets:all|layer:2|"),
        (3, "unit:word|targets:all|layer:2|head:3|"),
    ):
        options = MetricOptions(alignment=dataclasses.replace(settings, head=head))
        (metric,) = compute(["aer"], rows([one_hot(RIGHT)], [GOLD]), options)
        assert metric.signature == f"{prefix}rows:1 of 1"


def test_links_of_words_without_gold_are_wrong_in_the_paper():
    """A = {00, 11, 22}, S = P = {00}: 1 - (1 + 1) / (3 + 1)."""
    words, diagonal = ["▁a", "▁b", "▁c"], np.eye(3).tolist()
    assert rate([diagonal], ["0-0"], source=words, target=words).value == 0.5


def test_words_without_a_gold_link_can_be_left_out():
    metric = rate([one_hot([0, 1, 2, 0, 0, 0, 5])], ["0-0 1-1"], targets="gold")
    assert (metric.value, metric.signature) == (0.0, "unit:word|targets:gold|rows:1 of 1")


def test_weights_of_a_words_tokens_are_combined():
    weights = np.zeros((7, 6))
    weights[0] = [0.4, 0.3, 0.3, 0, 0, 0]  # the two tokens of "house" have 0.6
    weights[1] = weights[2] = [1, 0, 0, 0, 0, 0]
    assert rate([weights.tolist()], ["1-0"], targets="gold").value == 0.0
    weights[1], weights[2] = [0.9, 0, 0, 0.1, 0, 0], [0, 0, 0, 0.7, 0.3, 0]
    assert rate([weights.tolist()], ["0-1"], targets="gold").value == 0.0  # 0.45 against 0.40
    weights[0] = [0, 0, 0, 0, 0, 1.0]  # all on the end of sentence: no link
    assert rate([weights.tolist()], ["0-0"], targets="gold").value == 1.0


def test_links_between_characters():
    source, target = ["▁", "2", "0", "▁", "N", "o", "v", "</s>"], ["1", "1", "-", "20", "</s>"]
    weights = np.zeros((5, 8))
    weights[[0, 1, 2, 3], [4, 5, 3, 1]] = 1.0
    # "20 Nov" → "11-20": the token "20" belongs to its first character.
    gold = "3p0 4p0 5p0 3p1 4p1 5p1 0-3"
    sides = {"source": source, "target": target}
    metric = rate([weights.tolist()], [gold], "character", "gold", **sides)
    assert (metric.value, metric.signature) == (0.0, "unit:character|targets:gold|rows:1 of 1")


def test_rows_that_do_not_match_the_gold_links_are_skipped():
    metric = rate([one_hot(RIGHT), one_hot(RIGHT), one_hot(RIGHT)], [GOLD, "9-0", ""])
    assert (metric.value, metric.signature) == (0.0, "unit:word|targets:all|rows:1 of 3")
    nothing = rate([one_hot(RIGHT)], ["7-7"])
    assert math.isnan(nothing.value)
    assert nothing.signature.endswith("undefined:no links")


def test_a_model_without_attention_has_no_error_rate():
    without = Rows(["a"], [["a"]], {"links": ["0-0"]})
    options = MetricOptions(alignment=GoldAlignment("links", "word"))
    (metric,) = compute(["aer"], without, options)
    assert math.isnan(metric.value)


def test_invalid_links_and_missing_options_are_errors():
    with pytest.raises(ValueError, match="'0:0'; expected a form such as 0-0 or 2p3"):
        rate([one_hot(RIGHT)], ["0:0"])
    with pytest.raises(ValueError, match=r"needs evaluation\.alignment"):
        compute(["aer"], rows([one_hot(RIGHT)], [GOLD]))


TOKENS = ["▁a", "▁re", "d", "▁circle", "▁left", "▁of", "▁a", "▁blue", "▁square", "</s>"]
BOXES = [
    {"phrase": "red circle", "box": [0.0, 0.0, 0.5, 0.5]},
    {"phrase": "blue square", "box": [0.625, 0.5, 1.0, 1.0]},
]


def pointing(tokens, alignment, boxes):
    columns = {"pieces": tokens, "alignment": alignment, "boxes": boxes}
    rows = Rows(["x"] * len(tokens), [["x"]] * len(tokens), columns)
    (metric,) = compute(["pointing"], rows)
    return metric


def test_shares_inside_the_boxes():
    alignment = np.zeros((10, 4, 4))
    alignment[1:4, 0, 0] = 1.0  # all three tokens of "red circle"
    alignment[7, 3, 3] = 1.0  # "blue" inside
    alignment[8, 0, 0] = 1.0  # "square" outside
    metric = pointing([TOKENS], [alignment.tolist()], [json.dumps(BOXES)])
    assert metric.value == pytest.approx((1.0 + 0.5) / 2)
    assert metric.signature == "phrases:2|named:2"


def test_cells_count_by_their_covered_share():
    alignment = np.zeros((10, 4, 4))
    alignment[7:9, 2, 2] = 1.0  # the third column is from 0.5 to 0.75, the box begins at 0.625
    metric = pointing([TOKENS], [alignment], [json.dumps(BOXES[1:])])
    assert metric.value == pytest.approx(0.5)


def test_uniform_weights_give_the_area():
    even = np.full((10, 5, 7), 1 / 35)
    metric = pointing([TOKENS], [even], [json.dumps(BOXES)])
    assert metric.value == pytest.approx((0.25 + 0.375 * 0.5) / 2)


def test_phrases_that_the_caption_lacks_do_not_count():
    boxes = [*BOXES, {"phrase": "circle left of b", "box": [0, 0, 1, 1]}]
    metric = pointing([TOKENS], [np.full((10, 2, 2), 0.25)], [json.dumps(boxes)])
    assert metric.signature == "phrases:3|named:2"
    nothing = pointing([TOKENS[:1]], [np.ones((1, 2, 2))], [json.dumps(BOXES)])
    assert math.isnan(nothing.value)
    assert "undefined" in nothing.signature


def test_missing_boxes_are_an_error():
    rows = Rows(["x"], [["x"]], {"pieces": [TOKENS], "alignment": [[]]})
    with pytest.raises(ValueError, match="needs the column 'boxes'"):
        compute(["pointing"], rows)
