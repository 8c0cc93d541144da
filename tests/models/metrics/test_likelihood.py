from __future__ import annotations

import math

import pytest

from models import metrics
from models.metrics import METRICS, Rows
from models.metrics.likelihood import comparable

COLUMNS = {"forced_score": [-2.0, -6.0, 0.0], "forced_length": [2, 5, 1]}
ROWS = Rows(["a", "b", "c"], [["a"], ["b"], ["c"]], COLUMNS)


def test_the_mean_is_over_pieces_not_over_rows():
    (found,) = metrics.compute(["perplexity"], ROWS)
    assert found.value == pytest.approx(math.exp(8.0 / 8))
    assert found.signature == "unit:piece|pieces:8"
    assert not found.higher_is_better


def test_its_statistics_give_the_same_of_any_rows():
    kind = METRICS["perplexity"]
    statistics = kind.statistics(ROWS, {})
    assert statistics.value(statistics.rows.sum(axis=0)) == kind.function(ROWS, {})[0]
    assert statistics.value(statistics.rows[[1]].sum(axis=0)) == pytest.approx(math.exp(6 / 5))


def test_a_model_that_scores_nothing_has_none():
    (found,) = metrics.compute(["perplexity"], Rows(["a"], [["a"]]))
    assert not found.defined
    assert "undefined" in found.signature
    assert math.isnan(METRICS["perplexity"].statistics(Rows(["a"], [["a"]]), {}).rows.sum())


def test_what_was_not_read_is_in_the_signature():
    rows = Rows(ROWS.hypotheses, ROWS.references, {**COLUMNS, "forced_cut": [0, 3, 1]})
    assert metrics.compute(["perplexity"], rows)[0].signature == "unit:piece|pieces:8|cut:4"
    rows = Rows(ROWS.hypotheses, ROWS.references, {**COLUMNS, "forced_cut": [0, 0, 0]})
    assert metrics.compute(["perplexity"], rows)[0].signature == "unit:piece|pieces:8"


def test_models_of_other_pieces_are_not_comparable():
    """Though all references together have as many."""
    others = Rows(ROWS.hypotheses, ROWS.references, {**COLUMNS, "forced_length": [3, 4, 1]})
    (found,) = metrics.compute(["perplexity"], comparable(others, ROWS))
    assert not found.defined
    assert found.signature == "unit:piece|undefined:its pieces are not those of the new model"
    alike = Rows(ROWS.hypotheses, ROWS.references, {**COLUMNS, "forced_score": [-9.0, -9.0, -9.0]})
    nothing = Rows(ROWS.hypotheses, ROWS.references)
    assert comparable(alike, ROWS) == alike
    assert comparable(nothing, ROWS) == nothing
    assert comparable(alike, nothing) == alike


def test_what_is_impossible_is_without_end():
    rows = Rows(["a"], [["a"]], {"forced_score": [-1e9], "forced_length": [1]})
    assert metrics.compute(["perplexity"], rows)[0].value == math.inf
