import itertools
import math

import numpy as np
import pytest

from regard.models import metrics
from regard.models.metrics import Rows

SQUARE = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.5, 0.5]]
HULL = [0, 1, 2, 3]
TOUR = [0, 1, 2, 3, 4]


def metric_of(name, hypotheses, references, points=SQUARE):
    rows = Rows(hypotheses, [[one] for one in references], {"points": [points] * len(hypotheses)})
    (metric,) = metrics.compute([name], rows)
    return metric


def test_polygons_match_up_to_rotation_and_reversal():
    every = [list(p) for k in range(5) for p in itertools.permutations(range(4), k)]
    for one, other in itertools.product(every, every):
        rotations = [other[i:] + other[:i] for i in range(max(1, len(other)))]
        rotations += [list(reversed(cycle)) for cycle in rotations]
        assert metric_of("hull_accuracy", [one], [other]).value == (one in rotations)


@pytest.mark.parametrize("container", [list, np.array])
def test_area_ratio(container):
    triangle, whole = container([0, 1, 2]), container([3, 2, 1, 0])
    metric = metric_of("hull_area", [triangle, whole], [HULL, HULL])
    assert metric.value == pytest.approx(0.75)
    assert metric.signature == "nrefs:1|crossed:0|short:0"


def test_invalid_polygons_count_zero_and_are_reported():
    bad = [[0, 2, 1, 3], [0, 1], [], [0, 0, 1], [0, 1, 2, 2], [0, 4, 2, 3, 1, 9]]
    metric = metric_of("hull_area", [*bad, HULL], [HULL] * 7)
    assert metric.value == pytest.approx(1 / 7)
    assert metric.signature == "nrefs:1|crossed:3|short:3"


@pytest.mark.parametrize(
    ("corners", "simple"),
    [
        ([(0, 0), (2, 0), (2, 2), (0, 2)], True),
        ([(0, 0), (2, 2), (2, 0), (0, 2)], False),  # two sides cross
        ([(0, 0), (4, 0), (4, 2), (2, 0), (0, 2)], False),  # a corner lies on a side
        ([(0, 0), (4, 0), (2, 0), (2, 2)], False),  # a side runs back along its neighbour
        ([(0, 0), (2, 0), (4, 0), (4, 4)], True),  # neighbours may form a straight line
    ],
)
def test_only_simple_polygons_have_an_area(corners, simple):
    order = list(range(len(corners)))
    assert (metric_of("hull_area", [order], [order], corners).value == 1.0) is simple


def test_tour_length_and_ratio():
    diagonal = [0, 2, 1, 3, 4]
    metric = metric_of("tour_length", [TOUR, diagonal], [TOUR, TOUR])
    best = 3 + 2 * math.sqrt(0.5)
    worse = 2 * math.sqrt(2) + 1 + 2 * math.sqrt(0.5)
    assert metric.value == pytest.approx((best + worse) / 2)
    assert (metric.signature, metric.higher_is_better) == ("closed", False)
    ratio = metric_of("tour_ratio", [TOUR, diagonal], [TOUR, TOUR])
    assert ratio.value == pytest.approx((1 + worse / best) / 2)
    assert ratio.signature == "nrefs:1|closed"


def test_the_shortest_reference_counts():
    rows = Rows([TOUR], [[[0, 2, 1, 3, 4], TOUR]], {"points": [SQUARE]})
    (metric,) = metrics.compute(["tour_ratio"], rows)
    assert (metric.value, metric.signature) == (1.0, "nrefs:2|closed")


@pytest.mark.parametrize("bad", [[0, 1, 2, 3], [0, 1, 2, 3, 3], [0, 1, 2, 3, 5], []])
def test_an_invalid_tour_makes_lengths_undefined(bad):
    for name in ("tour_length", "tour_ratio"):
        metric = metric_of(name, [TOUR, bad], [TOUR, TOUR])
        assert math.isnan(metric.value)
        assert not metric.is_defined
        assert metric.signature == "closed|undefined:1 of 2 tours are not valid"
    assert metric_of("valid_tours", [TOUR, bad], [TOUR, TOUR]).value == 0.5


def test_coinciding_points():
    points = [[0.25, 0.5]] * 3
    assert metric_of("tour_ratio", [[0, 2, 1]], [[0, 1, 2]], points).value == 1.0
    assert metric_of("hull_area", [[0, 2, 1]], [[0, 1, 2]], points).value == 0.0


@pytest.mark.parametrize("name", ["hull_area", "tour_length", "tour_ratio", "valid_tours"])
def test_missing_points_are_an_error(name):
    with pytest.raises(ValueError, match="need the column 'points', which is missing"):
        metrics.compute([name], Rows([TOUR], [[TOUR]]))
