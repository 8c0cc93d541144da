from __future__ import annotations

import numpy as np
import pytest

from models import metrics
from models.metrics import Rows


def exact(hypotheses, references, **options):
    (metric,) = metrics.compute(["exact_match"], Rows(hypotheses, references), options)
    return metric


def test_case_counts_unless_it_does_not():
    mixed, lower = exact(["ABC "], [["abc"]]), exact(["ABC "], [["abc"]], lowercase=True)
    assert (mixed.value, lower.value) == (0.0, 1.0)
    assert lower.signature == "nrefs:1|case:lc|norm:strip"


def test_any_reference_will_do():
    metric = exact(["b", "x"], [["a", "b "], ["a"]])
    assert (metric.value, metric.signature) == (0.5, "nrefs:var|case:mixed|norm:strip")


@pytest.mark.parametrize("kind", [list, np.array])
def test_positions(kind):
    metric = exact([kind([0, 2, 1]), kind([0, 1])], [[[0, 2, 1]], [[1, 0], [0, 1, 2]]])
    assert (metric.value, metric.signature) == (0.5, "nrefs:var")


def test_numbers():
    assert exact([1.0, 2.0], [[1], [2.5]]).value == 0.5
