"""Exact solutions, compared with brute force."""

import itertools
import math

import numpy as np
import pytest

from regard.pipeline.datasets.point_sets import hulls, left_to_right, shortest_tours


def random_points(rows, n, limit=10**6, seed=0):
    return np.random.default_rng(seed).integers(0, limit, (rows, n, 2))


@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_left_to_right(n):
    points = random_points(50, n)
    assert left_to_right(points) == [sorted(range(n), key=lambda i: row[i][0]) for row in points]


def test_points_with_equal_x_have_no_order():
    points = np.array([[[1, 0], [2, 0], [1, 5]], [[3, 0], [2, 0], [1, 5]]])
    assert left_to_right(points) == [None, [2, 1, 0]]


def brute_hull(points):
    """Returns the hull: the edge from i to j is on it if no other point is to its right."""
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


@pytest.mark.parametrize(("n", "limit"), [(3, 10**6), (5, 10**6), (12, 10**6), (6, 5), (9, 12)])
def test_hulls(n, limit):
    # With few different coordinates many rows have points that coincide or lie on an edge.
    points = random_points(150, n, limit)
    result = hulls(points)
    assert result == [brute_hull(row) for row in points]
    assert (None in result) == (limit < 100)


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
    points = random_points(rows, n)
    assert shortest_tours(points) == [brute_tour(row) for row in points]


def test_batches(monkeypatch):
    points = random_points(7, 6)
    expected = shortest_tours(points)
    monkeypatch.setattr("regard.pipeline.datasets.point_sets._MAX_STATES", 3 * 5 * 32)
    assert shortest_tours(points) == expected


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
