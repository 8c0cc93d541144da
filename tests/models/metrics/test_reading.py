"""SQuAD's metrics and the attention on supporting sentences."""

import math

import numpy as np
import pytest

from regard.models.metrics import Rows, compute
from regard.models.metrics.reading import normalize_answer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Cat!", "cat"),
        ("an  apple, a day", "apple day"),
        ("theatre", "theatre"),
        ("U.S.", "us"),
        ("東京、", "東京、"),
        ("\U0001f600 the\nend", "\U0001f600 end"),
        ("the", ""),
    ],
)
def test_normalisation_of_squad(text, expected):
    assert normalize_answer(text) == expected


def test_exact_match_and_f1_take_the_best_reference():
    rows = Rows(
        ["The kitchen", "train station", "in the big garden", "a"],
        [["kitchen."], ["hall", "the station"], ["the big big garden"], ["the"]],
    )
    exact, f1 = compute(["squad_exact_match", "squad_f1"], rows)
    assert exact.value == 0.5
    # 1; p = 1/2, r = 1; p = 2/3, r = 2/3; both empty.
    assert f1.value == pytest.approx((1 + 2 / 3 + 2 / 3 + 1) / 4)
    assert exact.signature == f1.signature == "nrefs:var|norm:squad"


def test_no_common_word():
    (f1,) = compute(["squad_f1"], Rows(["x", "", "x"], [["y"], ["y"], ["the"]]))
    assert f1.value == 0.0


def rows(weights, supporting, begins=(0, 3, 6, 9)):
    columns = {"alignment": weights, "supporting": supporting}
    columns["passage_begins"] = [list(begins)] * len(weights)
    return Rows(["x"] * len(weights), [["x"]] * len(weights), columns)


def test_the_share_on_supporting_sentences():
    one = [[0.1, 0.2, 0.3, 0.4], [0.0, 1.0, 0.0, 0.0]]
    two = [[0.25, 0.25, 0.25, 0.25]]
    (metric,) = compute(
        ["supporting_attention"], rows([one, two, one], [[3, 6], [0, 2, 9, 12], None])
    )
    assert metric.value == pytest.approx((1.2 / 2 + 0.5) / 2)
    assert metric.signature == "rows:2 of 3"


def test_overlapping_sentences_count_once():
    weights = [np.full([1, 4], 0.25, "float32")]
    (metric,) = compute(["supporting_attention"], rows(weights, [[0, 9, 3, 12]]))
    assert metric.value == pytest.approx(1.0)


def test_without_supporting_sentences_it_is_undefined():
    (metric,) = compute(["supporting_attention"], rows([[[1.0, 0, 0, 0]]], [None]))
    assert math.isnan(metric.value)
    assert "undefined:no row has supporting sentences" in metric.signature
    with pytest.raises(ValueError, match="needs the column 'alignment'"):
        compute(["supporting_attention"], Rows(["x"], [["x"]]))


def test_f1_counts_characters_of_scripts_without_spaces():
    """As CMRC 2018 does (Cui et al. 2019): a sentence would be one word."""
    pairs = Rows(["在北京 in 2026", "北"], [["北京市 in 2026"], ["南"]])
    (metric,) = compute(["squad_f1"], pairs)
    # 4 common words of 5 and 5 in the first row.
    assert metric.value == pytest.approx((2 * 4 / 10 + 0) / 2)
