from __future__ import annotations

import math

import numpy as np
import pytest

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
    assert found.little == 0.0
    assert dict(attention.summary(found))["rows looked at"] == "20"


def test_at_most_so_many_rows_are_read_spread_over_all(facts, monkeypatch):
    monkeypatch.setattr(attention, "MOST_ROWS", 6)
    assert attention.measure(facts).rows == 6


@pytest.mark.parametrize(("kind", "called"), [("points", "points"), ("image", "cells")])
def test_looks_at_points_and_images(tmp_path, kind, called):
    assert attention.measure(runs.KINDS[kind](tmp_path)).pieces == called


def test_a_model_without_looks(tmp_path):
    assert attention.measure(runs.number_run(tmp_path)) is None
