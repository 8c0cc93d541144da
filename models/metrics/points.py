"""Metrics of answers that are positions of points: hulls and tours."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from models.metrics.base import Rows, Summed, mean_of

# The column with the points of each row, which a table of predictions has from the data.
POINTS = "points"

Point = tuple[float, float]


def hull_accuracy(rows: Rows, options: Mapping[str, Any]) -> tuple[float, str]:
    """The share of answers that are the polygon of a reference, 0 to 1.

    Vinyals et al. 2015, "Pointer Networks", §4.2: where a polygon starts, and in which direction
    it is walked, makes no other polygon of it.
    """
    return sum(_same_cycle(rows)) / len(rows.hypotheses), f"nrefs:{rows.reference_count()}"


def hull_area(rows: Rows, options: Mapping[str, Any]) -> tuple[float, str]:
    """The area of the answered polygon by that of the first reference, a mean, 0 to 1.

    Vinyals et al. 2015, §4.2, but for this: an answer that is no simple polygon counts 0 and is
    not left out. The signature tells how many cross or touch themselves and how many have fewer
    than three corners.
    """
    shares, crossed, short = _areas(rows)
    signature = f"nrefs:{rows.reference_count()}|crossed:{crossed}|short:{short}"
    return statistics.fmean(shares), signature


def _same_cycle(rows: Rows) -> list[bool]:
    pairs = zip(rows.hypotheses, rows.references, strict=True)
    return [_cycle(got) in map(_cycle, wanted) for got, wanted in pairs]


def _areas(rows: Rows) -> tuple[list[float], int, int]:
    """Of each row the share of the area; how many cross themselves, and how many are short."""
    shares, crossed, short = [], 0, 0
    for points, got, wanted in _rows(rows):
        corners = set(got)
        fewer = len(corners) < 3
        simple = len(corners) == len(got) and corners <= set(range(len(points)))
        simple = simple and not fewer and _is_simple([points[i] for i in got])
        short += fewer
        crossed += not fewer and not simple
        true = _area([points[i] for i in wanted[0]])
        shares.append(_area([points[i] for i in got]) / true if simple and true else 0.0)
    return shares, crossed, short


def tour_length(rows: Rows, options: Mapping[str, Any]) -> tuple[float, str]:
    """The mean length of the answered tours, closed, in the points' own unit; lower is better."""
    if reason := _invalid(rows):
        return math.nan, reason
    return statistics.fmean(_lengths(rows)), "closed"


def tour_ratio(rows: Rows, options: Mapping[str, Any]) -> tuple[float, str]:
    """The length of each tour by that of its shortest reference, a mean; lower is better."""
    if reason := _invalid(rows):
        return math.nan, reason
    return statistics.fmean(_ratios(rows)), f"nrefs:{rows.reference_count()}|closed"


def valid_tours(rows: Rows, options: Mapping[str, Any]) -> tuple[float, str]:
    """The share of answers that name every point exactly once, 0 to 1."""
    return sum(_valid(rows)) / len(rows.hypotheses), "visits:all"


SUMMED: Mapping[str, Summed] = MappingProxyType(
    {
        "hull_accuracy": lambda rows, options: mean_of(_same_cycle(rows)),
        "hull_area": lambda rows, options: mean_of(_areas(rows)[0]),
        "tour_length": lambda rows, options: mean_of(_lengths(rows)),
        "tour_ratio": lambda rows, options: mean_of(_ratios(rows)),
        "valid_tours": lambda rows, options: mean_of(_valid(rows)),
    }
)


def _lengths(rows: Rows) -> list[float]:
    return [_length(points, got) for points, got, _ in _rows(rows)]


def _ratios(rows: Rows) -> list[float]:
    ratios = []
    for points, got, wanted in _rows(rows):
        ours, theirs = _length(points, got), min(_length(points, one) for one in wanted)
        # Where all points lie in one place, every tour is as short as the shortest.
        ratios.append(ours / theirs if theirs else 1.0)
    return ratios


def _rows(rows: Rows) -> Iterator[tuple[list[Point], list[int], Sequence[Sequence[int]]]]:
    """Of each row the points, the answer and the references.

    Raises:
        ValueError: the points are not known.
    """
    if POINTS not in rows.columns:
        raise ValueError(
            f"hulls and tours are measured by the column {POINTS!r}, which is not there"
        )
    all_points = rows.columns[POINTS]
    for points, got, wanted in zip(all_points, rows.hypotheses, rows.references, strict=True):
        yield [(float(x), float(y)) for x, y in points], [int(i) for i in got], wanted


def _cycle(positions: Sequence[int]) -> list[int]:
    """The same polygon from its lowest position, the lesser neighbour second."""
    cycle = [int(position) for position in positions]
    start = cycle.index(min(cycle)) if cycle else 0
    cycle = cycle[start:] + cycle[:start]
    return min(cycle, cycle[:1] + cycle[:0:-1])


def _sides(corners: Sequence[Point]) -> list[tuple[Point, Point]]:
    return list(zip(corners, [*corners[1:], *corners[:1]], strict=True))


def _length(points: Sequence[Point], tour: Sequence[int]) -> float:
    return sum(math.dist(a, b) for a, b in _sides([points[i] for i in tour]))


def _area(corners: Sequence[Point]) -> float:
    return abs(sum(a[0] * b[1] - a[1] * b[0] for a, b in _sides(corners))) / 2


def _is_simple(corners: Sequence[Point]) -> bool:
    """Whether no two sides of the polygon have more in common than the corner of neighbours."""
    sides = _sides(corners)
    for one, other in itertools.combinations(range(len(sides)), 2):
        (a, b), (c, d) = sides[one], sides[other]
        if other - one in (1, len(sides) - 1):
            # Neighbours have more in common only if the second goes back on the first.
            turned = _turn(a, b, c) == 0 == _turn(a, b, d)
            back = (b[0] - a[0]) * (d[0] - c[0]) + (b[1] - a[1]) * (d[1] - c[1]) < 0
            if turned and back:
                return False
        elif _meet(a, b, c, d):
            return False
    return True


def _meet(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether the way from a to b and that from c to d have a point in common."""
    for axis in (0, 1):
        low = max(min(a[axis], b[axis]), min(c[axis], d[axis]))
        high = min(max(a[axis], b[axis]), max(c[axis], d[axis]))
        if low > high:
            return False
    return _turn(a, b, c) * _turn(a, b, d) <= 0 and _turn(c, d, a) * _turn(c, d, b) <= 0


def _turn(a: Point, b: Point, c: Point) -> int:
    """On which side of the line from a to b c lies: 1 to the left, -1 to the right, 0 on it."""
    area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    return (area > 0) - (area < 0)


def _valid(rows: Rows) -> list[bool]:
    return [sorted(got) == list(range(len(points))) for points, got, _ in _rows(rows)]


def _invalid(rows: Rows) -> str:
    """Why lengths say nothing: a tour that leaves cities out is shorter; or the empty string."""
    invalid = len(rows.hypotheses) - sum(_valid(rows))
    if not invalid:
        return ""
    return f"closed|undefined:{invalid} of {len(rows.hypotheses)} tours are not valid"
