from __future__ import annotations

import math

import numpy as np
import pytest

from models import metrics
from models.metrics import Rows

HYPOTHESES = [1.0, 2.5, 2.5, 4.75, 3.0]
REFERENCES = [1.0, 2.0, 3.5, 5.0, 2.5]


def rows(hypotheses=HYPOTHESES, references=REFERENCES) -> Rows:
    return Rows(hypotheses, [[reference] for reference in references])


def test_against_their_formulas():
    pearson, spearman, mse = metrics.compute(["pearson", "spearman", "mse"], rows())
    assert pearson.value == pytest.approx(np.corrcoef(HYPOTHESES, REFERENCES)[0, 1])
    ranks = [1, 2.5, 2.5, 5, 4], [1, 2, 4, 5, 3]
    assert spearman.value == pytest.approx(np.corrcoef(*ranks)[0, 1])
    wanted = np.mean(np.subtract(HYPOTHESES, REFERENCES) ** 2)
    assert mse.value == pytest.approx(wanted)
    assert (pearson.signature, pearson.scale) == ("nrefs:1", 1.0)
    assert not mse.higher_is_better


def test_of_several_references_the_mean_counts():
    (metric,) = metrics.compute(["mse"], Rows([2.0, 0.5], [[1.0, 3.0], [0.5]]))
    assert metric.value == 0.0
    assert metric.signature == "nrefs:var"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (rows([3.0] * 5), "all hypotheses are the same"),
        (rows([3.0, 3.0, 3.0, 3.0, 3.000001]), "all hypotheses are the same"),
        (rows([0.0] * 5), "all hypotheses are the same"),
        (rows(references=[3.0] * 5), "all references are the same"),
        (rows([1.0], [2.0]), "all hypotheses are the same"),
        (rows([math.nan, *HYPOTHESES[1:]]), "not all hypotheses are finite"),
    ],
)
def test_a_correlation_that_is_undefined_says_why(given, reason):
    for metric in metrics.compute(["pearson", "spearman"], given):
        assert math.isnan(metric.value)
        assert not metric.defined
        assert metric.signature == f"nrefs:1|undefined:{reason}"


def test_an_error_is_undefined_only_where_there_is_no_number():
    undefined, constant = (
        metrics.compute(["mse"], rows(given))[0]
        for given in ([math.inf, *HYPOTHESES[1:]], [3.0] * 5)
    )
    assert undefined.signature == "nrefs:1|undefined:not all hypotheses are finite"
    assert not undefined.defined
    assert constant.defined


def test_numpys_numbers_are_numbers():
    (metric,) = metrics.compute(["mse"], rows(np.array(HYPOTHESES, np.float32).tolist()))
    (same,) = metrics.compute(["mse"], rows([np.float32(number) for number in HYPOTHESES]))
    assert metric.value == same.value
