"""Exact answers to questions about points: in which order, on which hull, on which tour.

Points are whole numbers, so that what is equal, or on a line, is known for certain.
"""

from __future__ import annotations

import numpy as np

# Rows whose tours are searched at once: as many as fit into about 64 MiB.
_STATES = 1 << 22


def left_to_right(points: np.ndarray) -> list[list[int] | None]:
    """The positions of each row's points by x; None where two have the same.

    Args:
        points: ``[rows, n, 2]`` whole numbers.
    """
    x = points[:, :, 0]
    order = np.argsort(x, axis=1)
    ranked = np.take_along_axis(x, order, axis=1)
    clear = np.asarray((np.diff(ranked, axis=1) > 0).all(axis=1))
    return [row.tolist() if fine else None for row, fine in zip(order, clear, strict=True)]


def hulls(points: np.ndarray) -> list[list[int] | None]:
    """The corners of each row's convex hull, counter-clockwise from the lowest position.

    None where that is not clear: where another point lies on one of its edges or corners.

    Args:
        points: ``[rows, n, 2]`` whole numbers, n at least 3.
    """
    return [_hull(row) for row in points]


def _hull(points: np.ndarray) -> list[int] | None:
    from scipy.spatial import ConvexHull, QhullError

    try:
        corners = ConvexHull(points).vertices  # of the plane, counter-clockwise
    except QhullError:  # all on one line
        return None
    corners = np.roll(corners, -int(corners.argmin()))
    edges = np.roll(points[corners], -1, axis=0) - points[corners]
    others = points[None] - points[corners][:, None]
    # Twice the area that each edge spans with each point: 0 for those of the edge itself alone.
    areas = edges[:, None, 0] * others[..., 1] - edges[:, None, 1] * others[..., 0]
    rows = np.arange(len(corners))
    areas[rows, corners] = areas[rows, np.roll(corners, -1)] = 1
    return corners.tolist() if (areas > 0).all() else None


def shortest_tours(points: np.ndarray) -> list[list[int] | None]:
    """The shortest closed tour through each row's points, from 0, the lesser neighbour second.

    Held and Karp 1962, "A Dynamic Programming Approach to Sequencing Problems": the shortest ways
    from 0 through each set of points to each of its members, sets of one size at a time, all rows
    at once. Takes ``n² 2ⁿ`` steps.

    Args:
        points: ``[rows, n, 2]``, n at least 3.
    """
    rows, n, _ = points.shape
    at_once = max(1, _STATES // ((n - 1) << (n - 1)))
    found: list[list[int] | None] = []
    for start in range(0, rows, at_once):
        found += _tours(points[start : start + at_once].astype(np.float64))
    return found


def _tours(points: np.ndarray) -> list[list[int] | None]:
    rows, n, _ = points.shape
    distance = np.linalg.norm(points[:, :, None] - points[:, None], axis=-1)
    others = n - 1  # all but 0; a set of them is a number, whose bit j stands for point j + 1
    sets = np.arange(1 << others)
    sizes = sum((sets >> j) & 1 for j in range(others))
    best = np.full((rows, 1 << others, others), np.inf)
    before = np.zeros((rows, 1 << others, others), dtype=np.int8)
    for j in range(others):
        best[:, 1 << j, j] = distance[:, 0, j + 1]
    for size in range(2, n):
        for j in range(others):
            ending = sets[(sizes == size) & ((sets >> j) & 1 == 1)]
            ways = best[:, ending ^ (1 << j)] + distance[:, None, 1:, j + 1]
            before[:, ending, j] = ways.argmin(axis=2)
            best[:, ending, j] = ways.min(axis=2)
    last = (best[:, -1] + distance[:, 0, 1:]).argmin(axis=1)
    return [_walked(before[row], int(last[row])) for row in range(rows)]


def _walked(before: np.ndarray, last: int) -> list[int]:
    """The tour that ends in ``last``, read backwards."""
    left, tour = len(before) - 1, []
    while left:
        tour.append(last + 1)
        left, last = left ^ (1 << last), int(before[left, last])
    tour = tour if tour[0] < tour[-1] else tour[::-1]
    return [0, *tour]
