import math

import pytest

from regard.models import metrics
from regard.models.metrics import Rows
from regard.models.metrics.perplexity import drop_incomparable_scores

COLUMNS = {"forced_score": [-2.0, -6.0, 0.0], "forced_length": [2, 5, 1]}
ROWS = Rows(["a", "b", "c"], [["a"], ["b"], ["c"]], COLUMNS)


def test_the_mean_is_over_tokens_not_over_rows():
    (metric,) = metrics.compute(["perplexity"], ROWS)
    assert metric.value == pytest.approx(math.exp(8.0 / 8))
    assert metric.signature == "unit:token|tokens:8"
    assert not metric.higher_is_better


def test_perplexity_without_scores_is_undefined():
    (metric,) = metrics.compute(["perplexity"], Rows(["a"], [["a"]]))
    assert not metric.is_defined
    assert "undefined" in metric.signature


def test_truncated_tokens_are_in_the_signature():
    rows = Rows(ROWS.hypotheses, ROWS.references, {**COLUMNS, "forced_cut": [0, 3, 1]})
    assert metrics.compute(["perplexity"], rows)[0].signature == "unit:token|tokens:8|cut:4"
    rows = Rows(ROWS.hypotheses, ROWS.references, {**COLUMNS, "forced_cut": [0, 0, 0]})
    assert metrics.compute(["perplexity"], rows)[0].signature == "unit:token|tokens:8"


def test_scores_of_another_vocabulary_are_dropped():
    """The total number of tokens is equal, that of single references is not."""
    others = Rows(ROWS.hypotheses, ROWS.references, {**COLUMNS, "forced_length": [3, 4, 1]})
    (metric,) = metrics.compute(["perplexity"], drop_incomparable_scores(others, ROWS))
    assert not metric.is_defined
    assert metric.signature == "unit:token|undefined:the new model has another vocabulary"
    comparable = Rows(
        ROWS.hypotheses, ROWS.references, {**COLUMNS, "forced_score": [-9.0, -9.0, -9.0]}
    )
    unscored = Rows(ROWS.hypotheses, ROWS.references)
    assert drop_incomparable_scores(comparable, ROWS) == comparable
    assert drop_incomparable_scores(unscored, ROWS) == unscored
    assert drop_incomparable_scores(comparable, unscored) == comparable


def test_impossible_references_have_infinite_perplexity():
    rows = Rows(["a"], [["a"]], {"forced_score": [-1e9], "forced_length": [1]})
    assert metrics.compute(["perplexity"], rows)[0].value == math.inf
