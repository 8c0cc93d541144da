import gzip
import itertools
import json
import math
import statistics

import numpy as np
import pytest

from components.errors import UserError
from pipeline import datasets
from pipeline.datasets import points

NAMES = ("sorting", "hull", "tours")
SPLITS = ("train", "eval", "test")


def rows_of(directory, split):
    with gzip.open(directory / f"{split}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module", params=NAMES)
def made(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp(request.param)
    return request.param, directory, datasets.generator(request.param)(directory, rows=600)


def test_splits_and_sizes(made):
    name, directory, summary = made
    assert summary.name == name
    assert summary.rows == {"train": 540, "eval": 30, "test": 30}
    assert {p.name for p in directory.iterdir()} == {p.name for p in summary.files}
    assert summary.made == 4
    low, high = {"tours": (5, 10)}.get(name, (5, 12))
    for split in ("train", "eval"):
        sizes = [len(row["points"]) for row in rows_of(directory, split)]
        assert len(sizes) == summary.rows[split]
        assert set(sizes) <= set(range(low, high + 1))
    assert {len(row["points"]) for row in rows_of(directory, "train")} == set(range(low, high + 1))
    tested = [len(row["points"]) for row in rows_of(directory, "test")]
    assert {n: tested.count(n) for n in set(tested)} == dict.fromkeys(
        (5, 10, 12) if name == "tours" else (5, 10, 20), 10
    )


def test_answers_are_right(made):
    name, directory, _ = made
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
    datasets.generator("tours")(tmp_path, rows=20_000, sizes="3", test_sizes="5,10")
    lengths = {5: [], 10: []}
    for row in rows_of(tmp_path, "test"):
        stops = [row["points"][i] for i in row["answer"]]
        total = sum(map(math.dist, stops, [*stops[1:], stops[0]]))
        lengths[len(stops)].append(total)
    assert statistics.fmean(lengths[5]) == pytest.approx(2.12, abs=0.06)
    assert statistics.fmean(lengths[10]) == pytest.approx(2.87, abs=0.05)


def test_what_is_known_of_it_lies_beside(made):
    name, directory, summary = made
    record = json.loads((directory / f"{name}.json").read_text())
    assert record["rows"] == summary.rows
    assert record["seed"] == 17
    for split in SPLITS:
        sizes = [len(row["points"]) for row in rows_of(directory, split)]
        assert record["sizes"][split] == {str(n): sizes.count(n) for n in sorted(set(sizes))}
    assert record["versions"].keys() == {"numpy", "scipy"}


def test_no_points_are_in_two_rows(made):
    _, directory, _ = made
    every = [json.dumps(row["points"]) for split in SPLITS for row in rows_of(directory, split)]
    assert len(set(every)) == len(every)


@pytest.mark.parametrize("name", NAMES)
def test_seed_decides_every_byte(name, tmp_path):
    for folder, seed in (("a", 3), ("b", 3), ("c", 4)):
        datasets.generator(name)(tmp_path / folder, rows=200, seed=seed)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
        assert path.read_bytes() != (tmp_path / "c" / path.name).read_bytes()


def test_sizes_can_be_chosen(tmp_path):
    summary = datasets.generator("hull")(tmp_path, rows=100, sizes="3 - 4", test_sizes="7, 3,3")
    trained = {len(row["points"]) for row in rows_of(tmp_path, "train")}
    tested = [len(row["points"]) for row in rows_of(tmp_path, "test")]
    assert (trained, sorted(tested)) == ({3, 4}, [3, 3, 7, 7])
    assert summary.rows == {"train": 90, "eval": 5, "test": 4}
    datasets.generator("sorting")(tmp_path / "one", rows=100, sizes="6")
    assert {len(row["points"]) for row in rows_of(tmp_path / "one", "train")} == {6}


@pytest.mark.parametrize(
    ("name", "options", "message", "remedy"),
    [
        ("sorting", {"sizes": "5-"}, "'5-' is no range of sizes", "such as 5-20"),
        ("sorting", {"sizes": "five"}, "'five' is no range", "such as 5-20"),
        ("sorting", {"sizes": "9-5"}, "9 is more than 5", "Say 5-9"),
        ("sorting", {"sizes": "1-5"}, "sorting: 1 points are too few", "2 or more"),
        ("hull", {"sizes": "2-9"}, "hull: 2 points are too few", "3 or more"),
        ("tours", {"sizes": "5-13"}, "too long for more than 12 points", "12 or fewer"),
        ("tours", {"test_sizes": "5,20"}, "too long for more than 12 points", "12 or fewer"),
        ("hull", {"test_sizes": "5-20"}, "'5-20' is no list of sizes", "such as 5,10,20"),
        ("hull", {"rows": 59}, "59 rows are too few", "60 or more"),
    ],
)
def test_impossible_requests(tmp_path, name, options, message, remedy):
    with pytest.raises(UserError, match=message) as caught:
        datasets.generator(name)(tmp_path / "data", **options)
    assert remedy in caught.value.remedy
    assert not (tmp_path / "data").exists()


def test_rows_without_a_clear_answer_are_drawn_again(tmp_path, monkeypatch):
    """With so few places most rows have two points above each other."""
    monkeypatch.setattr(points, "DECIMALS", 1)
    datasets.generator("sorting")(tmp_path, rows=100, sizes="6", test_sizes="5")
    for row in rows_of(tmp_path, "train"):
        xs = [point[0] for point in row["points"]]
        assert len(set(xs)) == len(xs)


def test_a_question_that_never_has_an_answer_is_a_bug(tmp_path, monkeypatch):
    monkeypatch.setattr(points, "DECIMALS", 0)
    with pytest.raises(RuntimeError, match="6 points at random never"):
        datasets.generator("sorting")(tmp_path, rows=100, sizes="6", test_sizes="5")
    assert list(tmp_path.iterdir()) == []


def test_progress_is_told(tmp_path):
    told = []
    make = datasets.generator("sorting")
    make(tmp_path, rows=2_000, progress=lambda text, share: told.append((text, share)))
    assert told[0][0] == "1,000 of 1,999 rows"
    assert told[-1] == ("1,999 of 1,999 rows", 1.0)
    assert [share for _, share in told] == sorted(share for _, share in told)


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="--out"):
        datasets.generator("sorting")(tmp_path / "file" / "data", rows=100)


def test_no_space_left(tmp_path, monkeypatch):
    import errno

    def full(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(points, "atomic_write", full)
    with pytest.raises(UserError, match="no space left"):
        datasets.generator("hull")(tmp_path, rows=100)
