"""Metrics of models that output positions of points: convex hulls and tours."""

import itertools
import math
from collections.abc import Iterator, Sequence

from regard.models.metrics.base import (
    MetricOptions,
    Rows,
    Statistics,
    match_statistics,
    mean_statistics,
)

# The column with the points of each row.
POINTS = "points"

Point = tuple[float, ...]


def hull_accuracy(rows: Rows, options: MetricOptions) -> Statistics:
    """Compute the share of outputs that are the polygon of a reference, 0 to 1.

    Vinyals et al. 2015, "Pointer Networks", §4.2: the starting point and the direction do not
    matter.
    """
    return match_statistics(rows, _canonical_cycle)


def hull_area(rows: Rows, options: MetricOptions) -> Statistics:
    """Compute the mean ratio of the output's area to that of the first reference, 0 to 1.

    Vinyals et al. 2015, §4.2, except that outputs which are not simple polygons count as 0 instead
    of being left out. The signature states how many cross or touch themselves and how many have
    fewer than three corners.
    """
    ratios, crossed, short = [], 0, 0
    for points, hypothesis, references in _parse_rows(rows):
        corners = set(hypothesis)
        is_short = len(corners) < 3
        is_simple = len(corners) == len(hypothesis) and corners <= set(range(len(points)))
        is_simple = is_simple and not is_short and _is_simple([points[i] for i in hypothesis])
        short += is_short
        crossed += not is_short and not is_simple
        area = _area([points[i] for i in references[0]])
        use = is_simple and area
        ratios.append(_area([points[i] for i in hypothesis]) / area if use else 0.0)
    signature = f"nrefs:{rows.reference_count()}|crossed:{crossed}|short:{short}"
    return mean_statistics(ratios, signature)


def tour_length(rows: Rows, options: MetricOptions) -> Statistics:
    """Compute the mean length of the closed tours in the unit of the points; lower is better."""
    if undefined := _undefined_tours(rows):
        return undefined
    lengths = [_length(points, hypothesis) for points, hypothesis, _ in _parse_rows(rows)]
    return mean_statistics(lengths, "closed")


def tour_ratio(rows: Rows, options: MetricOptions) -> Statistics:
    """Compute the mean ratio of a tour to its shortest reference; lower is better."""
    if undefined := _undefined_tours(rows):
        return undefined
    ratios = []
    for points, hypothesis, references in _parse_rows(rows):
        shortest = min(_length(points, reference) for reference in references)
        # If all points coincide, every tour is as short as the shortest.
        ratios.append(_length(points, hypothesis) / shortest if shortest else 1.0)
    return mean_statistics(ratios, f"nrefs:{rows.reference_count()}|closed")


def valid_tours(rows: Rows, options: MetricOptions) -> Statistics:
    """Compute the share of outputs that visit every point exactly once, 0 to 1."""
    return mean_statistics(_validity(rows), "visits:all")


def _parse_rows(rows: Rows) -> Iterator[tuple[list[Point], list[int], Sequence[Sequence[int]]]]:
    """Yield the points, the output and the references of each row.

    Raises:
        ValueError: there is no column of points.
    """
    if POINTS not in rows.columns:
        raise ValueError(f"metrics of hulls and tours need the column {POINTS!r}, which is missing")
    columns = zip(rows.columns[POINTS], rows.hypotheses, rows.references, strict=True)
    for points, hypothesis, references in columns:
        coordinates = [tuple(map(float, point)) for point in points]
        yield coordinates, [int(i) for i in hypothesis], references


def _canonical_cycle(positions: Sequence[int]) -> list[int]:
    """Return the same polygon from its lowest position, towards the lesser neighbour."""
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
    """Return whether sides share no points except the corners of neighbours."""
    sides = _sides(corners)
    for first, second in itertools.combinations(range(len(sides)), 2):
        (a, b), (c, d) = sides[first], sides[second]
        if second - first in (1, len(sides) - 1):
            # Neighbours overlap only if the second side runs back along the first.
            is_straight = _orientation(a, b, c) == 0 == _orientation(a, b, d)
            is_reversed = (b[0] - a[0]) * (d[0] - c[0]) + (b[1] - a[1]) * (d[1] - c[1]) < 0
            if is_straight and is_reversed:
                return False
        elif _intersect(a, b, c, d):
            return False
    return True


def _intersect(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Return whether the segments from a to b and from c to d share a point."""
    for axis in (0, 1):
        low = max(min(a[axis], b[axis]), min(c[axis], d[axis]))
        high = min(max(a[axis], b[axis]), max(c[axis], d[axis]))
        if low > high:
            return False
    crosses_ab = _orientation(a, b, c) * _orientation(a, b, d) <= 0
    return crosses_ab and _orientation(c, d, a) * _orientation(c, d, b) <= 0


def _orientation(a: Point, b: Point, c: Point) -> int:
    """Return 1 if c lies left of the line from a to b, -1 if right, 0 if on it."""
    area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    return (area > 0) - (area < 0)


def _validity(rows: Rows) -> list[bool]:
    return [
        sorted(hypothesis) == list(range(len(points)))
        for points, hypothesis, _ in _parse_rows(rows)
    ]


def _undefined_tours(rows: Rows) -> Statistics | None:
    """Return an undefined metric if a tour is invalid.

    A tour that leaves points out is shorter, so its length says nothing.
    """
    invalid = len(rows.hypotheses) - sum(_validity(rows))
    if not invalid:
        return None
    signature = f"closed|undefined:{invalid} of {len(rows.hypotheses)} tours are not valid"
    return Statistics(signature, precise_value=math.nan)
