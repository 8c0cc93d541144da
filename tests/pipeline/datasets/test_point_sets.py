"""Random points with exact solutions."""

import dataclasses
import itertools
import json
import math
import statistics
from collections import Counter

import numpy as np
import pytest

from regard.core.errors import UserError
from regard.pipeline import datasets
from regard.pipeline.datasets import point_sets
from tests.pipeline.datasets.generated_rows import SPLITS, rows_of


def sizes_of(directory, split):
    return [len(row["points"]) for row in rows_of(directory, split)]


@pytest.fixture(scope="module", params=["sorting", "hull", "tours"])
def generated(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp(request.param)
    return request.param, directory, datasets.writer("generate", request.param)(directory, rows=600)


def test_splits_and_sizes(generated):
    name, directory, rows = generated
    assert rows == {"train": 540, "eval": 30, "test": 30}
    files = {f"{name}.json", *(f"{split}.jsonl.gz" for split in SPLITS)}
    assert {p.name for p in directory.iterdir()} == files
    trained = set(range(5, 11 if name == "tours" else 13))
    assert set(sizes_of(directory, "train")) == trained
    assert set(sizes_of(directory, "eval")) <= trained
    sizes = (5, 10, 12) if name == "tours" else (5, 10, 20)
    assert Counter(sizes_of(directory, "test")) == dict.fromkeys(sizes, 10)


def test_solutions_are_correct(generated):
    name, directory, _ = generated
    for split in SPLITS:
        for row in rows_of(directory, split):
            corners, answer = row["points"], row["answer"]
            assert all(0 <= x < 1 and round(x, 6) == x for point in corners for x in point)
            if name == "sorting":
                xs = [corners[i][0] for i in answer]
                assert sorted(answer) == list(range(len(corners)))
                # Also as float32, which is what models read.
                assert (np.diff(np.array(xs, np.float32)) > 0).all()
            elif name == "hull":
                assert answer[0] == min(answer)
                sides = zip(answer, [*answer[1:], answer[0]], strict=True)
                for (a, b), k in itertools.product(sides, range(len(corners))):
                    if k not in (a, b):
                        assert left_of(corners[a], corners[b], corners[k])
            else:
                assert answer[0] == 0
                assert answer[1] < answer[-1]
                assert sorted(answer) == list(range(len(corners)))


def left_of(a, b, c):
    (ax, ay), (bx, by), (cx, cy) = ([round(10**6 * x) for x in point] for point in (a, b, c))
    return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax) > 0


def test_tours_are_as_short_as_published(tmp_path):
    """Vinyals et al. 2015, table 2: 2.12 for 5 cities at random, 2.87 for 10."""
    tours = dataclasses.replace(point_sets.TOURS, sizes=(3, 3), test_sizes=(5, 10))
    point_sets.generate(tours, tmp_path, rows=20_000)
    lengths = {5: [], 10: []}
    for row in rows_of(tmp_path, "test"):
        stops = [row["points"][i] for i in row["answer"]]
        total = sum(map(math.dist, stops, [*stops[1:], stops[0]]))
        lengths[len(stops)].append(total)
    assert statistics.fmean(lengths[5]) == pytest.approx(2.12, abs=0.06)
    assert statistics.fmean(lengths[10]) == pytest.approx(2.87, abs=0.05)


def test_description(generated):
    name, directory, rows = generated
    record = json.loads((directory / f"{name}.json").read_text())
    assert record["rows"] == rows
    assert record["seed"] == 17
    for split in SPLITS:
        assert len(sizes_of(directory, split)) == rows[split]
    assert record["versions"].keys() == {"numpy", "scipy"}


def test_rows_are_unique(generated):
    _, directory, _ = generated
    every = [json.dumps(row["points"]) for split in SPLITS for row in rows_of(directory, split)]
    assert len(set(every)) == len(every)


def test_too_few_rows(tmp_path):
    with pytest.raises(UserError, match="59 rows are too few") as info:
        point_sets.hull(tmp_path / "data", rows=59)
    assert "60 or more" in info.value.remedy
    assert not (tmp_path / "data").exists()


SIX_POINTS = dataclasses.replace(point_sets.SORTING, sizes=(6, 6), test_sizes=(5,))


def test_rows_with_an_ambiguous_solution_are_replaced(tmp_path, monkeypatch):
    """With so few coordinates most rows have two points with the same x."""
    monkeypatch.setattr(point_sets, "DECIMALS", 1)
    point_sets.generate(SIX_POINTS, tmp_path, rows=100)
    for row in rows_of(tmp_path, "train"):
        xs = [point[0] for point in row["points"]]
        assert len(set(xs)) == len(xs) == 6


def test_problem_without_a_solution_is_a_bug(tmp_path, monkeypatch):
    monkeypatch.setattr(point_sets, "DECIMALS", 0)
    with pytest.raises(RuntimeError, match="no 6 random points"):
        point_sets.generate(SIX_POINTS, tmp_path, rows=100)
    assert list(tmp_path.iterdir()) == []


def test_progress(tmp_path):
    reports = []
    point_sets.sorting(
        tmp_path, rows=2_400, progress=lambda text, fraction: reports.append((text, fraction))
    )
    assert reports == [(f"{n},000 of 2,400 rows", n / 2.4) for n in (1, 2)]
