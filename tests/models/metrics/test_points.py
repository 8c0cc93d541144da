from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from models import metrics
from models.metrics import Rows
from models.metrics.points import _is_simple

SQUARE = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.5, 0.5]]
HULL = [0, 1, 2, 3]
TOUR = [0, 1, 2, 3, 4]


def measured(name, hypotheses, references, points=SQUARE):
    rows = Rows(hypotheses, [[one] for one in references], {"points": [points] * len(hypotheses)})
    (metric,) = metrics.compute([name], rows)
    return metric


@pytest.mark.parametrize(
    ("answer", "same"),
    [
        ([0, 1, 2, 3], True),
        ([2, 3, 0, 1], True),
        ([1, 0, 3, 2], True),
        ([0, 2, 1, 3], False),
        ([0, 1, 2], False),
        ([0, 1, 2, 3, 4], False),
        ([], False),
    ],
)
def test_a_polygon_has_no_start_and_no_direction(answer, same):
    metric = measured("hull_accuracy", [answer, HULL], [HULL, HULL])
    assert metric.value == (1.0 if same else 0.5)
    assert metric.signature == "nrefs:1"


def test_polygons_are_the_same_if_one_can_be_turned_into_the_other():
    every = [list(p) for k in range(5) for p in itertools.permutations(range(4), k)]
    for one, other in itertools.product(every, every):
        turned = [other[i:] + other[:i] for i in range(max(1, len(other)))]
        turned += [list(reversed(cycle)) for cycle in turned]
        assert measured("hull_accuracy", [one], [other]).value == (one in turned)


@pytest.mark.parametrize("answer", [list, np.array])
def test_areas(answer):
    triangle, whole = answer([0, 1, 2]), answer([3, 2, 1, 0])
    metric = measured("hull_area", [triangle, whole], [HULL, HULL])
    assert metric.value == pytest.approx(0.75)
    assert metric.signature == "nrefs:1|crossed:0|short:0"


def test_what_is_no_polygon_counts_nothing_and_is_told():
    bad = [[0, 2, 1, 3], [0, 1], [], [0, 0, 1], [0, 1, 2, 2], [0, 4, 2, 3, 1, 9]]
    metric = measured("hull_area", [*bad, HULL], [HULL] * 7)
    assert metric.value == pytest.approx(1 / 7)
    assert metric.signature == "nrefs:1|crossed:3|short:3"


def _crosses(a, b, c, d):
    """Whether two sides have a point in common, by solving for it in fractions."""
    a, b, c, d = ([Fraction(x) for x in p] for p in (a, b, c, d))
    r, s, w = ([q[i] - p[i] for i in (0, 1)] for p, q in ((a, b), (c, d), (a, c)))

    def cross(u, v):
        return u[0] * v[1] - u[1] * v[0]

    if cross(r, s) != 0:
        t, u = cross(w, s) / cross(r, s), cross(w, r) / cross(r, s)
        return 0 <= t <= 1 and 0 <= u <= 1
    if cross(w, r) != 0:
        return False
    axis = 0 if r[0] or s[0] else 1
    return max(min(a[axis], b[axis]), min(c[axis], d[axis])) <= min(
        max(a[axis], b[axis]), max(c[axis], d[axis])
    )


def _simple(corners):
    """By cutting the corner out of neighbours: what is left of two sides must not meet."""
    n = len(corners)
    sides = [(corners[i], corners[(i + 1) % n]) for i in range(n)]
    for i, j in itertools.combinations(range(n), 2):
        (a, b), (c, d) = sides[i], sides[j]
        if j == i + 1:
            c = [c[k] + Fraction(d[k] - c[k], 1000) for k in (0, 1)]
        elif (j + 1) % n == i:
            d = [d[k] + Fraction(c[k] - d[k], 1000) for k in (0, 1)]
        if _crosses(a, b, c, d):
            return False
    return True


def test_simple_polygons_are_told_from_others():
    random = np.random.default_rng(0)
    found = []
    for n in (3, 4, 5, 6):
        for _ in range(150):
            # Few places, so that corners lie on sides and sides on each other.
            corners = []
            while len(corners) < n:
                corner = random.integers(0, 4, 2).tolist()
                if corner not in corners:
                    corners.append(corner)
            found.append(_is_simple([tuple(map(float, corner)) for corner in corners]))
            assert found[-1] == _simple(corners), corners
    assert 100 < sum(found) < 500


def test_lengths_of_tours():
    diagonal = [0, 2, 1, 3, 4]
    metric = measured("tour_length", [TOUR, diagonal], [TOUR, TOUR])
    best = 3 + 2 * math.sqrt(0.5)
    worse = 2 * math.sqrt(2) + 1 + 2 * math.sqrt(0.5)
    assert metric.value == pytest.approx((best + worse) / 2)
    assert (metric.signature, metric.higher_is_better) == ("closed", False)
    ratio = measured("tour_ratio", [TOUR, diagonal], [TOUR, TOUR])
    assert ratio.value == pytest.approx((1 + worse / best) / 2)
    assert ratio.signature == "nrefs:1|closed"


def test_of_several_references_the_shortest_counts():
    rows = Rows([TOUR], [[[0, 2, 1, 3, 4], TOUR]], {"points": [SQUARE]})
    (metric,) = metrics.compute(["tour_ratio"], rows)
    assert (metric.value, metric.signature) == (1.0, "nrefs:2|closed")


@pytest.mark.parametrize("bad", [[0, 1, 2, 3], [0, 1, 2, 3, 3], [0, 1, 2, 3, 5], []])
def test_a_tour_that_is_none_makes_lengths_undefined(bad):
    for name in ("tour_length", "tour_ratio"):
        metric = measured(name, [TOUR, bad], [TOUR, TOUR])
        assert math.isnan(metric.value)
        assert not metric.defined
        assert metric.signature == "closed|undefined:1 of 2 tours are not valid"
    assert measured("valid_tours", [TOUR, bad], [TOUR, TOUR]).value == 0.5


def test_points_in_one_place():
    points = [[0.25, 0.5]] * 3
    assert measured("tour_ratio", [[0, 2, 1]], [[0, 1, 2]], points).value == 1.0
    assert measured("hull_area", [[0, 2, 1]], [[0, 1, 2]], points).value == 0.0


@pytest.mark.parametrize("name", ["hull_area", "tour_length", "tour_ratio", "valid_tours"])
def test_without_points_nothing_is_measured(name):
    with pytest.raises(ValueError, match="by the column 'points', which is not there"):
        metrics.compute([name], Rows([TOUR], [[TOUR]]))


def test_against_random_polygons_in_numpy():
    random = np.random.default_rng(1)
    points = random.random((50, 8, 2))
    tours = [random.permutation(8).tolist() for _ in range(50)]
    rows = Rows(tours, [[tour] for tour in tours], {"points": points.tolist()})
    (metric,) = metrics.compute(["tour_length"], rows)
    walked = np.take_along_axis(points, np.array(tours)[..., None], axis=1)
    steps = np.linalg.norm(walked - np.roll(walked, 1, axis=1), axis=-1)
    assert metric.value == pytest.approx(steps.sum(1).mean())
