"""Data for pointers: random points with an exact answer, to be sorted, enclosed or toured.

The problems of Vinyals et al. 2015, "Pointer Networks", §3. Everything comes from a seed, so a
data set can be made again byte for byte.
"""

from __future__ import annotations

import functools
import gzip
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from components.errors import UserError
from components.files import atomic_path, atomic_write
from pipeline.datasets import geometry
from pipeline.datasets.summary import Progress, Summary, disk_errors

# Coordinates have so many decimals, and float32 tells all of them apart.
DECIMALS = 6
# Rows that are made between two signs of progress.
_PART = 1000
# Tries for each row whose answer is not clear; of points at random nearly all are.
_TRIES = 200

Row = tuple[np.ndarray, list[int]]


@dataclass(frozen=True)
class Problem:
    """One kind of question.

    Attributes:
        name: of the data set.
        answer: rows of points ``[rows, n, 2]`` → the answer to each, None where it is not clear.
        sizes: the fewest and the most points of rows to train on.
        test_sizes: those of rows to test on.
        least: the fewest points that the question makes sense for.
        most: the most points that it can be answered for; None: any number.
        rows: of all splits together.
    """

    name: str
    answer: Callable[[np.ndarray], list[list[int] | None]]
    sizes: tuple[int, int]
    test_sizes: tuple[int, ...]
    least: int
    most: int | None = None
    rows: int = 100_000


SORTING = Problem("sorting", geometry.left_to_right, (5, 12), (5, 10, 20), least=2)
HULL = Problem("hull", geometry.hulls, (5, 12), (5, 10, 20), least=3)
TOURS = Problem("tours", geometry.shortest_tours, (5, 10), (5, 10, 12), least=3, most=12)


def generate(
    problem: Problem,
    directory: str | Path,
    rows: int | None = None,
    seed: int = 17,
    sizes: str | None = None,
    test_sizes: str | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Writes ``train``, ``eval`` and ``test`` as gzipped JSON lines: points and the answer.

    Points lie in the unit square at random. Rows of ``train`` and ``eval`` have any number of
    points in the range of ``sizes``; ``test`` has equally many rows of each of its sizes, which
    need not be among those. Beside them lies ``<name>.json`` (counts, seed, versions).

    Args:
        problem: what is asked.
        directory: made if absent; files of an earlier call are replaced.
        rows: of all splits together; a twentieth goes to each of eval and test.
        seed: the same seed and library versions give the same bytes.
        sizes: the range of the numbers of points to train on, such as ``5-20``, or one number.
        test_sizes: those to test on, such as ``5,10,20``.
        progress: told the share done.

    Raises:
        UserError: sizes that are none, or that the problem cannot have; too few rows; or the
            directory cannot be written.
    """
    directory = Path(directory)
    low, high = _range(problem, sizes) if sizes else problem.sizes
    tested = _listed(problem, test_sizes) if test_sizes else problem.test_sizes
    rows = problem.rows if rows is None else rows
    least = 20 * len(tested)
    if rows < least:
        raise UserError(f"{rows} rows are too few", remedy=f"Ask for {least} or more.")
    random = np.random.default_rng(seed)
    part = rows // 20
    drawn = {
        "train": random.integers(low, high + 1, rows - 2 * part),
        "eval": random.integers(low, high + 1, part),
        "test": np.repeat(tested, part // len(tested)),
    }
    tell = _teller(progress, sum(map(len, drawn.values())))
    files = {split: directory / f"{split}.jsonl.gz" for split in drawn}
    with disk_errors(directory):
        for split, numbers in drawn.items():
            _write(files[split], _rows(problem, numbers, random, tell))
        about = directory / f"{problem.name}.json"
        atomic_write(about, _provenance(problem, drawn, seed, (low, high)))
    return Summary(
        name=problem.name,
        directory=directory,
        files=(*files.values(), about),
        rows={split: len(numbers) for split, numbers in drawn.items()},
        made=len(files) + 1,
    )


sorting = functools.partial(generate, SORTING)
hull = functools.partial(generate, HULL)
tours = functools.partial(generate, TOURS)


def _rows(
    problem: Problem, numbers: np.ndarray, random: np.random.Generator, tell: Callable[[int], None]
) -> Iterator[Row]:
    """Rows with so many points each, in this order."""
    for start in range(0, len(numbers), _PART):
        part = numbers[start : start + _PART]
        made: list[Any] = [None] * len(part)
        for n in np.unique(part):
            # Those of one size are answered together.
            missing = np.flatnonzero(part == n)
            for _ in range(_TRIES):
                points = random.integers(0, 10**DECIMALS, (len(missing), int(n), 2))
                answers = problem.answer(points)
                for row, one, answer in zip(missing, points, answers, strict=True):
                    made[row] = None if answer is None else (one, answer)
                missing = np.array([row for row in missing if made[row] is None], dtype=int)
                if not len(missing):
                    break
            else:
                raise RuntimeError(f"{n} points at random never have a clear answer")
        yield from made
        tell(len(part))


def _write(path: Path, rows: Iterator[Row]) -> None:
    # No name and no time in the header: the same rows give the same bytes.
    with (
        atomic_path(path) as temporary,
        open(temporary, "wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as file,
    ):
        for points, answer in rows:
            record = {"points": (points / 10**DECIMALS).tolist(), "answer": answer}
            file.write((json.dumps(record) + "\n").encode())


def _teller(progress: Progress | None, total: int) -> Callable[[int], None]:
    done = 0

    def tell(more: int) -> None:
        nonlocal done
        done += more
        if progress:
            progress(f"{done:,} of {total:,} rows", done / total)

    return tell


def _range(problem: Problem, text: str) -> tuple[int, int]:
    found = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", text)
    if found is None:
        remedy = "Give a range such as 5-20, or one number."
        raise UserError(f"{text!r} is no range of sizes", where="--sizes", remedy=remedy)
    low, high = int(found[1]), int(found[2] or found[1])
    if low > high:
        raise UserError(f"{low} is more than {high}", where="--sizes", remedy=f"Say {high}-{low}.")
    _check(problem, (low, high), "--sizes")
    return low, high


def _listed(problem: Problem, text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", text):
        remedy = "Separate numbers with commas, such as 5,10,20."
        raise UserError(f"{text!r} is no list of sizes", where="--test-sizes", remedy=remedy)
    sizes = tuple(sorted({int(size) for size in text.split(",")}))
    _check(problem, sizes, "--test-sizes")
    return sizes


def _check(problem: Problem, sizes: Sequence[int], where: str) -> None:
    low, high = min(sizes), max(sizes)
    if low < problem.least:
        remedy = f"Ask for {problem.least} or more."
        raise UserError(f"{problem.name}: {low} points are too few", where=where, remedy=remedy)
    if problem.most is not None and high > problem.most:
        raise UserError(
            f"{problem.name}: exact answers take too long for more than {problem.most} points",
            where=where,
            remedy=f"Ask for {problem.most} or fewer.",
        )


def _provenance(
    problem: Problem, drawn: dict[str, np.ndarray], seed: int, sizes: tuple[int, int]
) -> str:
    from importlib.metadata import version

    record = {
        "name": problem.name,
        "seed": seed,
        "rows": {split: len(numbers) for split, numbers in drawn.items()},
        "sizes": {
            split: {
                int(n): int(count)
                for n, count in zip(*np.unique(numbers, return_counts=True), strict=True)
            }
            for split, numbers in drawn.items()
        },
        "trained_sizes": list(sizes),
        "decimals": DECIMALS,
        "versions": {name: version(name) for name in ("numpy", "scipy")},
    }
    return json.dumps(record, indent=2) + "\n"
