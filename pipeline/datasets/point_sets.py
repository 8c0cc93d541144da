"""Data for pointer networks: random points to sort, to enclose or to tour, with exact solutions.

The problems of Vinyals et al. 2015, "Pointer Networks", section 3. A seed determines every byte.
"""

import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from regard.core.errors import UserError
from regard.pipeline.datasets import dataset_files

# States of the dynamic program to hold in memory, about 64 MiB.
_MAX_STATES = 1 << 22
# Decimals of the coordinates; float32 distinguishes all of them.
DECIMALS = 6
_BATCH_ROWS = 1000  # rows that are solved together
# Attempts for each row whose solution is ambiguous; of random points almost none is.
_MAX_ATTEMPTS = 200


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


@dataclass(frozen=True)
class PointProblem:
    """One problem on points.

    Attributes:
        name: the name of the data set.
        solve: points ``[rows, n, 2]`` → the solution of each row, None if it is ambiguous.
        sizes: the minimum and maximum number of points in rows for training.
        test_sizes: the numbers of points in rows for testing.
    """

    name: str
    solve: Callable[[np.ndarray], list[list[int] | None]]
    sizes: tuple[int, int]
    test_sizes: tuple[int, ...]


SORTING = PointProblem("sorting", left_to_right, (5, 12), (5, 10, 20))
HULL = PointProblem("hull", hulls, (5, 12), (5, 10, 20))
TOURS = PointProblem("tours", shortest_tours, (5, 10), (5, 10, 12))


def generate(
    problem: PointProblem,
    directory: str | Path,
    rows: int = 100_000,
    seed: int = 17,
    dimensions: int = 2,
    progress: dataset_files.Progress | None = None,
) -> dict[str, int]:
    """Write ``train``, ``eval`` and ``test`` as gzipped JSON lines: points and the solution.

    Points are uniformly distributed in the unit square, or cube. Rows of ``train`` and ``eval``
    have any number of points in ``sizes``; ``test`` has the same number of rows for each of
    ``test_sizes``.
    ``<name>.json`` contains counts, seed and library versions.

    Args:
        problem: the problem.
        directory: created if missing; existing files are replaced.
        rows: the rows of all splits; eval and test get a twentieth each.
        seed: equal seeds and library versions give equal bytes.
        dimensions: the number of coordinates of a point. Points are sorted by the first one.
        progress: receives the fraction that is done.

    Raises:
        UserError: there are too few rows, or the problem has no such dimensions.
    """
    if dimensions < 1 or (problem is HULL and dimensions != 2):
        message = f"The data set {problem.name} has no points of {dimensions} dimensions."
        remedy = "Use 2 for hull, and at least 1 for sorting and tours."
        raise UserError(message, "--dimensions", remedy)
    low, high = problem.sizes
    held_out = dataset_files.split_rows(rows, {"eval": 0.05}, 20 * len(problem.test_sizes))["eval"]
    rng = np.random.default_rng(seed)
    sizes = {
        "train": rng.integers(low, high + 1, rows - 2 * held_out),
        "eval": rng.integers(low, high + 1, held_out),
        "test": np.repeat(problem.test_sizes, held_out // len(problem.test_sizes)),
    }
    counts = {split: len(points) for split, points in sizes.items()}

    def lines(points: np.ndarray) -> Iterator[str]:
        for start in range(0, len(points), _BATCH_ROWS):
            batch = points[start : start + _BATCH_ROWS]
            yield from map(json.dumps, _records(problem, batch, rng, dimensions))

    files = {f"{split}.jsonl.gz": lines(points) for split, points in sizes.items()}
    return dataset_files.write_dataset(
        problem.name,
        Path(directory),
        seed,
        counts,
        files,
        progress,
        level=6,
        train_sizes=problem.sizes,
        decimals=DECIMALS,
        versions={name: version(name) for name in ("numpy", "scipy")},
    )


sorting = functools.partial(generate, SORTING)
hull = functools.partial(generate, HULL)
tours = functools.partial(generate, TOURS)


def _records(
    problem: PointProblem, sizes: np.ndarray, rng: np.random.Generator, dimensions: int
) -> list[dict[str, object]]:
    """Return rows with the given numbers of points, in this order."""
    records: list[dict[str, object]] = [{} for _ in sizes]
    for n in np.unique(sizes):
        missing = np.flatnonzero(sizes == n)  # all rows of one size are solved together
        for _ in range(_MAX_ATTEMPTS):
            points = rng.integers(0, 10**DECIMALS, (len(missing), int(n), dimensions))
            solutions = problem.solve(points)
            for row, point_set, solution in zip(missing, points, solutions, strict=True):
                if solution is not None:
                    coordinates = (point_set / 10**DECIMALS).tolist()
                    records[row] = {"points": coordinates, "answer": solution}
            missing = np.array([row for row in missing if not records[row]], dtype=int)
            if not len(missing):
                break
        else:
            raise RuntimeError(f"no {n} random points with an unambiguous solution")
    return records
