import math

import numpy as np
import pytest

from regard.models import metrics
from regard.models.metrics import Rows

HYPOTHESES = [1.0, 2.5, 2.5, 4.75, 3.0]
REFERENCES = [1.0, 2.0, 3.5, 5.0, 2.5]


def rows(hypotheses=HYPOTHESES, references=REFERENCES) -> Rows:
    return Rows(hypotheses, [[reference] for reference in references])


def test_values_follow_the_formulas():
    pearson, spearman, mse = metrics.compute(["pearson", "spearman", "mse"], rows())
    assert pearson.value == pytest.approx(np.corrcoef(HYPOTHESES, REFERENCES)[0, 1])
    ranks = [1, 2.5, 2.5, 5, 4], [1, 2, 4, 5, 3]
    assert spearman.value == pytest.approx(np.corrcoef(*ranks)[0, 1])
    expected = np.mean(np.subtract(HYPOTHESES, REFERENCES) ** 2)
    assert mse.value == pytest.approx(expected)
    assert (pearson.signature, pearson.scale) == ("nrefs:1", 1.0)
    assert not mse.higher_is_better


def test_several_references_are_averaged():
    (metric,) = metrics.compute(["mse"], Rows([2.0, 0.5], [[1.0, 3.0], [0.5]]))
    assert metric.value == 0.0
    assert metric.signature == "nrefs:var"


@pytest.mark.parametrize(
    ("scored_rows", "reason"),
    [
        (rows([3.0] * 5), "all hypotheses are the same"),
        (rows([3.0, 3.0, 3.0, 3.0, 3.000001]), "all hypotheses are the same"),
        (rows([0.0] * 5), "all hypotheses are the same"),
        (rows(references=[3.0] * 5), "all references are the same"),
        (rows([1.0], [2.0]), "all hypotheses are the same"),
        (rows([math.nan, *HYPOTHESES[1:]]), "not all hypotheses are finite"),
    ],
)
def test_an_undefined_correlation_states_the_reason(scored_rows, reason):
    for metric in metrics.compute(["pearson", "spearman"], scored_rows):
        assert math.isnan(metric.value)
        assert not metric.is_defined
        assert metric.signature == f"nrefs:1|undefined:{reason}"


def test_mse_is_undefined_only_for_non_finite_numbers():
    undefined, constant = (
        metrics.compute(["mse"], rows(hypotheses))[0]
        for hypotheses in ([math.inf, *HYPOTHESES[1:]], [3.0] * 5)
    )
    assert undefined.signature == "nrefs:1|undefined:not all hypotheses are finite"
    assert not undefined.is_defined
    assert constant.is_defined


def test_numpy_numbers_are_accepted():
    (metric,) = metrics.compute(["mse"], rows(np.array(HYPOTHESES, np.float32).tolist()))
    (same,) = metrics.compute(["mse"], rows([np.float32(number) for number in HYPOTHESES]))
    assert metric.value == same.value
