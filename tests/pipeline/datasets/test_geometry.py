"""Exact answers against brute force."""

import itertools
import math

import numpy as np
import pytest

from pipeline.datasets.geometry import hulls, left_to_right, shortest_tours


def drawn(rows, n, most=10**6, seed=0):
    return np.random.default_rng(seed).integers(0, most, (rows, n, 2))


@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_left_to_right(n):
    for points, found in zip(drawn(50, n), left_to_right(drawn(50, n)), strict=True):
        assert found == sorted(range(n), key=lambda i: points[i][0])


def test_points_above_each_other_have_no_order():
    points = np.array([[[1, 0], [2, 0], [1, 5]], [[3, 0], [2, 0], [1, 5]]])
    assert left_to_right(points) == [None, [2, 1, 0]]


def brute_hull(points):
    """The side from i to j is one of the hull's if all others lie to its left; None if on it."""
    following = {}
    for i, j in itertools.permutations(range(len(points)), 2):
        (ax, ay), (bx, by) = points[i].tolist(), points[j].tolist()
        if (ax, ay) == (bx, by):
            continue
        areas = [
            (bx - ax) * (y - ay) - (by - ay) * (x - ax)
            for k, (x, y) in enumerate(points.tolist())
            if k not in (i, j)
        ]
        if all(area >= 0 for area in areas):
            if 0 in areas:
                return None
            following[i] = j
    start = min(following)
    hull = [start]
    while following[hull[-1]] != start:
        hull.append(following[hull[-1]])
    return hull


@pytest.mark.parametrize(("n", "most"), [(3, 10**6), (5, 10**6), (12, 10**6), (6, 5), (9, 12)])
def test_hulls(n, most):
    # Of few places, many rows have points that coincide or lie on an edge.
    points = drawn(150, n, most)
    found = hulls(points)
    assert found == [brute_hull(row) for row in points]
    assert (None in found) == (most < 100)


def test_points_on_one_line_have_no_hull():
    assert hulls(np.array([[[0, 0], [1, 1], [2, 2]], [[5, 5], [5, 5], [5, 5]]])) == [None, None]


def brute_tour(points):
    def length(tour):
        return sum(math.dist(points[a], points[b]) for a, b in itertools.pairwise([*tour, 0]))

    others = range(1, len(points))
    tours = ([0, *p] for p in itertools.permutations(others) if p[0] < p[-1])
    return min(tours, key=length)


@pytest.mark.parametrize(("n", "rows"), [(3, 20), (4, 20), (5, 30), (6, 20), (7, 10), (8, 6)])
def test_shortest_tours(n, rows):
    points = drawn(rows, n)
    assert shortest_tours(points) == [brute_tour(row) for row in points]


def test_rows_are_searched_in_parts(monkeypatch):
    points = drawn(7, 6)
    together = shortest_tours(points)
    monkeypatch.setattr("pipeline.datasets.geometry._STATES", 3 * 5 * 32)  # three at once
    assert shortest_tours(points) == together


def test_twelve_cities_on_a_circle():
    random = np.random.default_rng(3)
    order = random.permutation(12)
    angles = 2 * np.pi * np.arange(12) / 12 + 0.1
    points = np.zeros((1, 12, 2), dtype=int)
    points[0, order] = np.stack([np.cos(angles), np.sin(angles)], axis=1) * 10**6
    (tour,) = shortest_tours(points)
    around = order.tolist()[order.tolist().index(0) :] + order.tolist()[: order.tolist().index(0)]
    assert tour in (around, [0, *around[:0:-1]])
    assert tour[1] < tour[-1]
