from __future__ import annotations

import math

import pytest

from components.reporter import ranking
from models.metrics import Rows
from tests.components.reporter import runs

SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1]]


def test_no_row_is_shown_twice_and_of_equals_the_longest():
    values = [5.0] * 10 + [1.0, 2.0] + [9.0] * 10
    lengths = list(range(22))
    found = ranking.choose(values, lengths)
    assert found["worst"] == [10, 11, 9, 8, 7, 6]
    assert found["best"] == [21, 20, 19, 18, 17, 16]
    assert len(found["chance"]) == ranking.SHOWN
    everything = [row for rows in found.values() for row in rows]
    assert len(set(everything)) == len(everything)
    assert found == ranking.choose(values, lengths)


def test_few_rows():
    assert ranking.choose([1.0, 0.0], [1, 1]) == {"worst": [1, 0], "best": [], "chance": []}


def test_texts_are_judged_by_chrf_alone():
    rows = Rows(["the cat sat", "x"], [["the cat sat"], ["the cat sat"]])
    values, told = ranking.quality(rows, ["exact_match", "bleu"], {})
    assert values[0] > values[1]
    assert told[0] == "chrF 100.00"


def test_numbers_are_judged_by_their_distance_and_nothing_is_worse_than_none():
    rows = Rows([0.5, 0.9, math.nan], [[0.25], [0.9], [0.5]])
    values, told = ranking.quality(rows, ["pearson"], {})
    assert values == [-0.25, 0.0, -math.inf]
    assert told == ["off by 0.25", "off by 0", "undefined"]


def test_positions_are_judged_by_the_metric_of_the_run():
    rows = Rows([[0, 1, 2, 3], [0, 2, 1, 3]], [[[0, 1, 2, 3]]] * 2, {"points": [SQUARE] * 2})
    values, told = ranking.quality(rows, ["tour_length"], {})
    assert values[0] == pytest.approx(-4.0)
    assert values[1] < values[0]
    assert told[0] == "tour length 4.0000"
    assert ranking.quality(rows, [], {})[0] == [1.0, 0.0]


@pytest.mark.parametrize("metric", ["tour_length", "tour_ratio"])
def test_a_short_tour_that_leaves_points_out_is_no_good_tour(metric):
    rows = Rows([[0, 1], [0, 1, 2, 3]], [[[0, 1, 2, 3]]] * 2, {"points": [SQUARE] * 2})
    values, told = ranking.quality(rows, [metric], {})
    assert values[0] == -math.inf
    assert told[0].endswith("undefined")
    assert math.isfinite(values[1])


def test_of_a_large_split_rows_from_all_over_are_judged(tmp_path, monkeypatch):
    monkeypatch.setattr(ranking, "MOST_JUDGED", 8)
    found = ranking.ranked(runs.text_run(tmp_path))
    assert sorted(found.told) == list(range(0, 20, 3))
    assert {row for rows in found.groups.values() for row in rows} <= found.told.keys()


def test_nothing_was_answered(tmp_path):
    facts = runs.number_run(tmp_path)
    (tmp_path / "predictions" / "candidate.parquet").unlink()
    assert ranking.ranked(facts) == ranking.Ranked({}, {})
