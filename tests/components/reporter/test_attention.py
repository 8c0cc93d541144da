from __future__ import annotations

import math

import numpy as np

from components import predictions
from components.reporter import attention
from tests.components.reporter import runs


def test_entropy_by_its_formula():
    weights = np.array([[0.5, 0.25, 0.25, 0.0], [0.25] * 4, [0, 0, 1, 0], [0, 0, 0, 0]])
    wanted = [1.5 * math.log(2) / math.log(4), 1.0, 0.0, 0.0]
    np.testing.assert_allclose(attention.entropy(weights), wanted, atol=1e-12)
    assert attention.entropy(np.ones((1, 1)))[0] == 0.0


def test_weights_need_not_sum_to_one():
    weights = np.array([[0.2, 0.1, 0.1]])
    np.testing.assert_allclose(attention.entropy(weights), attention.entropy(weights * 2.5))


def test_what_the_looks_of_a_run_have_in_common(facts):
    found = attention.measure(facts)
    assert found.rows == 20
    assert found.pieces == "pieces"
    assert found.entropy.shape == (40,)
    np.testing.assert_allclose(found.coverage[:3], [0.8 + 1 / 3, 0.2 + 1 / 3, 1 / 3], atol=1e-6)
    told = dict(attention.summary(found))
    assert told["rows looked at"] == "20"
    assert told["pieces looked at less than 0.2 times in all"] == "0%"


def test_at_most_so_many_rows_are_read_spread_over_all(facts, monkeypatch):
    monkeypatch.setattr(attention, "MOST_ROWS", 6)
    seen = []
    rows_at = predictions.rows_at
    monkeypatch.setattr(predictions, "rows_at", lambda *a: seen.append(a[1]) or rows_at(*a))
    assert attention.measure(facts).rows == 6
    assert seen == [[0, 3, 7, 11, 15, 19]]


def test_looks_at_points(tmp_path):
    found = attention.measure(runs.points_run(tmp_path))
    assert found.pieces == "points"
    np.testing.assert_allclose(found.coverage, 1.0)


def test_nobody_has_to_look_at_every_cell_of_an_image(tmp_path):
    found = attention.measure(runs.image_run(tmp_path))
    assert found.coverage is None
    assert len(attention.summary(found)) == 2


def test_a_model_without_looks(tmp_path):
    assert attention.measure(runs.number_run(tmp_path)) is None
