"""Data for pointer networks: random points to sort, to enclose or to tour, with exact solutions.

The problems of Vinyals et al. 2015, "Pointer Networks", section 3. A seed determines every byte.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from regard.components.common.errors import UserError
from regard.pipeline.datasets import point_geometry
from regard.pipeline.datasets.dataset_files import (
    Dataset,
    Progress,
    gzip_text,
    split_rows,
    write_dataset,
)

# Decimals of the coordinates; float32 distinguishes all of them.
DECIMALS = 6
_BATCH_ROWS = 1000  # rows between two progress reports
# Attempts for each row whose solution is ambiguous; of random points almost none is.
_MAX_ATTEMPTS = 200


@dataclass(frozen=True)
class Problem:
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


SORTING = Problem("sorting", point_geometry.left_to_right, (5, 12), (5, 10, 20))
HULL = Problem("hull", point_geometry.hulls, (5, 12), (5, 10, 20))
TOURS = Problem("tours", point_geometry.shortest_tours, (5, 10), (5, 10, 12))


def generate(
    problem: Problem,
    directory: str | Path,
    rows: int = 100_000,
    seed: int = 17,
    dimensions: int = 2,
    progress: Progress | None = None,
) -> Dataset:
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
        raise UserError(
            f"The data set {problem.name} has no points of {dimensions} dimensions.",
            "--dimensions",
            "Use 2 for hull, and at least 1 for sorting and tours.",
        )
    low, high = problem.sizes
    held_out = split_rows(rows, {"eval": 0.05}, 20 * len(problem.test_sizes))["eval"]
    rng = np.random.default_rng(seed)
    sizes = {
        "train": rng.integers(low, high + 1, rows - 2 * held_out),
        "eval": rng.integers(low, high + 1, held_out),
        "test": np.repeat(problem.test_sizes, held_out // len(problem.test_sizes)),
    }
    counts = {split: len(points) for split, points in sizes.items()}
    total, count = sum(counts.values()), 0
    content = {}
    for split, points in sizes.items():
        lines = []
        for start in range(0, len(points), _BATCH_ROWS):
            batch = points[start : start + _BATCH_ROWS]
            lines += [
                json.dumps(record) + "\n" for record in _records(problem, batch, rng, dimensions)
            ]
            count += len(batch)
            if progress:
                progress(f"{count:,} of {total:,} rows", count / total)
        content[f"{split}.jsonl.gz"] = gzip_text("".join(lines), 6)
    return write_dataset(
        problem.name,
        Path(directory),
        seed,
        content,
        counts,
        sizes={
            split: {int(n): int((points == n).sum()) for n in np.unique(points)}
            for split, points in sizes.items()
        },
        train_sizes=problem.sizes,
        decimals=DECIMALS,
        versions={name: version(name) for name in ("numpy", "scipy")},
    )


sorting = functools.partial(generate, SORTING)
hull = functools.partial(generate, HULL)
tours = functools.partial(generate, TOURS)


def _records(
    problem: Problem, sizes: np.ndarray, rng: np.random.Generator, dimensions: int
) -> list[dict[str, object]]:
    """Return rows with the given numbers of points, in this order."""
    records: list[dict[str, object]] = [{} for _ in sizes]
    for n in np.unique(sizes):
        missing = np.flatnonzero(sizes == n)  # all rows of one size are solved together
        for _ in range(_MAX_ATTEMPTS):
            points = rng.integers(0, 10**DECIMALS, (len(missing), int(n), dimensions))
            solutions = problem.solve(points)
            for row, one, solution in zip(missing, points, solutions, strict=True):
                if solution is not None:
                    coordinates = (one / 10**DECIMALS).tolist()
                    records[row] = {"points": coordinates, "answer": solution}
            missing = np.array([row for row in missing if not records[row]], dtype=int)
            if not len(missing):
                break
        else:
            raise RuntimeError(f"no {n} random points with an unambiguous solution")
    return records
