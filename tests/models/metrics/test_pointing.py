"""The share of attention that lies inside boxes."""

import json
import math

import numpy as np
import pytest

from models import metrics

PIECES = ["▁a", "▁re", "d", "▁circle", "▁left", "▁of", "▁a", "▁blue", "▁square", "</s>"]
BOXES = [
    {"phrase": "red circle", "box": [0.0, 0.0, 0.5, 0.5]},
    {"phrase": "blue square", "box": [0.625, 0.5, 1.0, 1.0]},
]


def pointing(pieces, alignment, boxes):
    columns = {"pieces": pieces, "alignment": alignment, "boxes": boxes}
    rows = metrics.Rows(["x"] * len(pieces), [["x"]] * len(pieces), columns)
    (metric,) = metrics.compute(["pointing"], rows)
    return metric


def test_all_weight_inside_and_half():
    alignment = np.zeros((10, 4, 4))
    alignment[1:4, 0, 0] = 1.0  # all three pieces of "red circle"
    alignment[7, 3, 3] = 1.0  # "blue" inside
    alignment[8, 0, 0] = 1.0  # "square" outside
    metric = pointing([PIECES], [alignment.tolist()], [json.dumps(BOXES)])
    assert metric.value == pytest.approx((1.0 + 0.5) / 2)
    assert metric.signature == "phrases:2|named:2"


def test_a_cell_counts_as_far_as_it_is_inside():
    alignment = np.zeros((10, 4, 4))
    alignment[7:9, 2, 2] = 1.0  # the third column is from 0.5 to 0.75, the box begins at 0.625
    metric = pointing([PIECES], [alignment], [json.dumps(BOXES[1:])])
    assert metric.value == pytest.approx(0.5)


def test_even_weights_give_the_area():
    even = np.full((10, 5, 7), 1 / 35)
    metric = pointing([PIECES], [even], [json.dumps(BOXES)])
    assert metric.value == pytest.approx((0.25 + 0.375 * 0.5) / 2)


def test_what_is_not_named_does_not_count():
    boxes = [*BOXES, {"phrase": "circle left of b", "box": [0, 0, 1, 1]}]
    metric = pointing([PIECES], [np.full((10, 2, 2), 0.25)], [json.dumps(boxes)])
    assert metric.signature == "phrases:3|named:2"
    nothing = pointing([PIECES[:1]], [np.ones((1, 2, 2))], [json.dumps(BOXES)])
    assert math.isnan(nothing.value)
    assert "undefined" in nothing.signature


def test_without_attention_it_is_nothing():
    metric = pointing([PIECES], [np.zeros((10, 2, 2))], [json.dumps(BOXES)])
    assert metric.value == 0.0


def test_without_boxes_it_cannot_be_asked():
    rows = metrics.Rows(["x"], [["x"]], {"pieces": [PIECES], "alignment": [[]]})
    with pytest.raises(ValueError, match="needs the column 'boxes'"):
        metrics.compute(["pointing"], rows)
