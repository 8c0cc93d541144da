"""Exact solutions of problems on points: the order, the convex hull and the shortest tour.

Coordinates are integers, so that equality and collinearity are exact.
"""

from __future__ import annotations

import numpy as np

# States of the dynamic program to hold in memory, about 64 MiB.
_MAX_STATES = 1 << 22


def left_to_right(points: np.ndarray) -> list[list[int] | None]:
    """Return the indices of each row's points in the order of x; None if two are equal.

    Args:
        points: integers, ``[rows, n, dimensions]``.
    """
    x = points[:, :, 0]
    order = np.argsort(x, axis=1)
    ordered = np.take_along_axis(x, order, axis=1)
    unique = np.asarray((np.diff(ordered, axis=1) > 0).all(axis=1))
    return [row.tolist() if ok else None for row, ok in zip(order, unique, strict=True)]


def hulls(points: np.ndarray) -> list[list[int] | None]:
    """Return the corners of each row's convex hull, counter-clockwise from the lowest index.

    None if another point is on an edge or a corner.

    Args:
        points: integers, ``[rows, n, 2]`` with n at least 3.
    """
    return [_hull(row) for row in points]


def _hull(points: np.ndarray) -> list[int] | None:
    from scipy.spatial import ConvexHull, QhullError

    try:
        corners = ConvexHull(points).vertices  # counter-clockwise in the plane
    except QhullError:  # all on one line
        return None
    corners = np.roll(corners, -int(corners.argmin()))
    edges = np.roll(points[corners], -1, axis=0) - points[corners]
    others = points[None] - points[corners][:, None]
    # Twice the area of each edge with each point: 0 only for the ends of the edge.
    areas = edges[:, None, 0] * others[..., 1] - edges[:, None, 1] * others[..., 0]
    rows = np.arange(len(corners))
    areas[rows, corners] = areas[rows, np.roll(corners, -1)] = 1
    return corners.tolist() if (areas > 0).all() else None


def shortest_tours(points: np.ndarray) -> list[list[int] | None]:
    """Return the shortest closed tour of each row's points, from 0 to its lower neighbour.

    Held and Karp 1962, "A Dynamic Programming Approach to Sequencing Problems": the shortest paths
    from 0 through each set of points to each of its members, by size of the set, for all rows
    together. Takes ``n² 2ⁿ`` steps.

    Args:
        points: ``[rows, n, dimensions]``, n at least 3.
    """
    rows, n, _ = points.shape
    batch = max(1, _MAX_STATES // ((n - 1) << (n - 1)))
    tours: list[list[int] | None] = []
    for start in range(0, rows, batch):
        tours += _tours(points[start : start + batch].astype(np.float64))
    return tours


def _tours(points: np.ndarray) -> list[list[int] | None]:
    rows, n, _ = points.shape
    distance = np.linalg.norm(points[:, :, None] - points[:, None], axis=-1)
    others = n - 1  # without 0; bit j of a set is point j + 1
    sets = np.arange(1 << others)
    sizes = sum((sets >> j) & 1 for j in range(others))
    best = np.full((rows, 1 << others, others), np.inf)
    previous = np.zeros((rows, 1 << others, others), dtype=np.int8)
    for j in range(others):
        best[:, 1 << j, j] = distance[:, 0, j + 1]
    for size in range(2, n):
        for j in range(others):
            ending = sets[(sizes == size) & ((sets >> j) & 1 == 1)]
            lengths = best[:, ending ^ (1 << j)] + distance[:, None, 1:, j + 1]
            previous[:, ending, j] = lengths.argmin(axis=2)
            best[:, ending, j] = lengths.min(axis=2)
    last = (best[:, -1] + distance[:, 0, 1:]).argmin(axis=1)
    return [_read_tour(previous[row], int(last[row])) for row in range(rows)]


def _read_tour(previous: np.ndarray, last: int) -> list[int]:
    """Return the tour that ends in ``last``, read backwards."""
    remaining, tour = len(previous) - 1, []
    while remaining:
        tour.append(last + 1)
        remaining, last = remaining ^ (1 << last), int(previous[remaining, last])
    tour = tour if tour[0] < tour[-1] else tour[::-1]
    return [0, *tour]
