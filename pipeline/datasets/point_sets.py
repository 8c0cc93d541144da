"""Data for pointer networks: random points to sort, to enclose or to tour, with exact solutions.

The problems of Vinyals et al. 2015, "Pointer Networks", section 3. A seed determines every byte.
"""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.components.common.errors import UserError
from regard.components.common.files import atomic_path, atomic_write
from regard.pipeline.datasets import point_geometry
from regard.pipeline.datasets.dataset_files import Dataset, Progress, disk_errors, json_text

# Decimals of the coordinates; float32 distinguishes all of them.
DECIMALS = 6
_BATCH_ROWS = 1000  # rows between two progress reports
# Attempts for each row whose solution is ambiguous; of random points almost none is.
_MAX_ATTEMPTS = 200

Row = tuple[np.ndarray, list[int]]


@dataclass(frozen=True)
class Problem:
    """One problem on points.

    Attributes:
        name: the name of the data set.
        solve: points ``[rows, n, 2]`` → the solution of each row, None if it is ambiguous.
        sizes: the minimum and maximum number of points in rows for training.
        test_sizes: the numbers of points in rows for testing.
        min_size: the minimum number of points of the problem.
        max_size: the maximum number of points that can be solved; None: no limit.
        rows: the default number of rows of all splits.
    """

    name: str
    solve: Callable[[np.ndarray], list[list[int] | None]]
    sizes: tuple[int, int]
    test_sizes: tuple[int, ...]
    min_size: int
    max_size: int | None = None
    rows: int = 100_000


SORTING = Problem("sorting", point_geometry.left_to_right, (5, 12), (5, 10, 20), min_size=2)
HULL = Problem("hull", point_geometry.hulls, (5, 12), (5, 10, 20), min_size=3)
TOURS = Problem("tours", point_geometry.shortest_tours, (5, 10), (5, 10, 12), 3, max_size=12)


def generate(
    problem: Problem,
    directory: str | Path,
    rows: int | None = None,
    seed: int = 17,
    sizes: tuple[int, int] | None = None,
    test_sizes: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Write ``train``, ``eval`` and ``test`` as gzipped JSON lines: points and the solution.

    Points are uniformly distributed in the unit square. Rows of ``train`` and ``eval`` have any
    number of points in ``sizes``; ``test`` has the same number of rows for each of ``test_sizes``.
    ``<name>.json`` contains counts, seed and library versions.

    Args:
        problem: the problem.
        directory: created if missing; existing files are replaced.
        rows: the rows of all splits; eval and test get a twentieth each.
        seed: equal seeds and library versions give equal bytes.
        sizes: the minimum and maximum number of points for training.
        test_sizes: the numbers of points for testing.
        progress: receives the fraction that is done.

    Raises:
        UserError: impossible sizes, too few rows, or a directory that cannot be written.
    """
    directory = Path(directory)
    low, high = sizes or problem.sizes
    test_sizes = tuple(test_sizes or problem.test_sizes)
    _check_sizes(problem, (low, high, *test_sizes))
    rows = problem.rows if rows is None else rows
    min_rows = 20 * len(test_sizes)
    if rows < min_rows:
        raise UserError(f"{rows} rows are too few.", remedy=f"Use {min_rows} or more.")
    rng = np.random.default_rng(seed)
    held_out = rows // 20
    counts = {
        "train": rng.integers(low, high + 1, rows - 2 * held_out),
        "eval": rng.integers(low, high + 1, held_out),
        "test": np.repeat(test_sizes, held_out // len(test_sizes)),
    }
    report = _reporter(progress, sum(map(len, counts.values())))
    files = {split: directory / f"{split}.jsonl.gz" for split in counts}
    with disk_errors(directory):
        for split, points in counts.items():
            _write(files[split], _rows(problem, points, rng, report))
        description = directory / f"{problem.name}.json"
        atomic_write(description, _description(problem, counts, seed, (low, high)))
    return Dataset(
        name=problem.name,
        directory=directory,
        files=(*files.values(), description),
        rows={split: len(points) for split, points in counts.items()},
        files_written=len(files) + 1,
    )


sorting = functools.partial(generate, SORTING)
hull = functools.partial(generate, HULL)
tours = functools.partial(generate, TOURS)


def _rows(
    problem: Problem,
    counts: np.ndarray,
    rng: np.random.Generator,
    report: Callable[[int], None],
) -> Iterator[Row]:
    """Yield rows with the given numbers of points, in this order."""
    for start in range(0, len(counts), _BATCH_ROWS):
        batch = counts[start : start + _BATCH_ROWS]
        rows: list[Row | None] = [None] * len(batch)
        for n in np.unique(batch):
            missing = np.flatnonzero(batch == n)  # all rows of one size are solved together
            for _ in range(_MAX_ATTEMPTS):
                points = rng.integers(0, 10**DECIMALS, (len(missing), int(n), 2))
                solutions = problem.solve(points)
                for row, one, solution in zip(missing, points, solutions, strict=True):
                    rows[row] = None if solution is None else (one, solution)
                missing = np.array([row for row in missing if rows[row] is None], dtype=int)
                if not len(missing):
                    break
            else:
                raise RuntimeError(f"no {n} random points with an unambiguous solution")
        yield from filter(None, rows)
        report(len(batch))


def _write(path: Path, rows: Iterator[Row]) -> None:
    # Without name and date in the header equal rows give equal bytes.
    with (
        atomic_path(path) as temporary,
        open(temporary, "wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as file,
    ):
        for points, solution in rows:
            record = {"points": (points / 10**DECIMALS).tolist(), "answer": solution}
            file.write((json.dumps(record) + "\n").encode())


def _reporter(progress: Progress | None, total: int) -> Callable[[int], None]:
    count = 0

    def report(rows: int) -> None:
        nonlocal count
        count += rows
        if progress:
            progress(f"{count:,} of {total:,} rows", count / total)

    return report


def _check_sizes(problem: Problem, sizes: Sequence[int]) -> None:
    if min(sizes) < problem.min_size:
        raise UserError(
            f"{problem.name}: {min(sizes)} points are too few.",
            remedy=f"Use {problem.min_size} or more.",
        )
    if problem.max_size is not None and max(sizes) > problem.max_size:
        raise UserError(
            f"{problem.name}: exact solutions for {max(sizes)} points take too long.",
            remedy=f"Use {problem.max_size} or fewer.",
        )


def _description(
    problem: Problem, counts: dict[str, np.ndarray], seed: int, sizes: tuple[int, int]
) -> str:
    from importlib.metadata import version

    return json_text(
        {
            "name": problem.name,
            "seed": seed,
            "rows": {split: len(points) for split, points in counts.items()},
            "sizes": {
                split: {int(n): int((points == n).sum()) for n in np.unique(points)}
                for split, points in counts.items()
            },
            "train_sizes": list(sizes),
            "decimals": DECIMALS,
            "versions": {name: version(name) for name in ("numpy", "scipy")},
        }
    )
