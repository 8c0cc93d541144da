"""Tables of the Predictor with rounding errors and with real differences."""

import copy

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.cluster.predictions import find_different_columns

COLUMNS = {
    "row": [0, 1, 2],
    "hypothesis": ["Ein Hund.", "", "Zwei Katzen."],
    "score": [-17.3291, float("nan"), None],
    "alignment": [[[0.25, 0.75], [1.0, 0.0]], [], None],
}


def write(path, columns):
    kinds = {"score": pa.float32(), "alignment": pa.list_(pa.list_(pa.float32()))}
    arrays = {name: pa.array(values, kinds.get(name)) for name, values in columns.items()}
    pq.write_table(pa.table(arrays), path)
    return path


def changed(change):
    columns = copy.deepcopy(COLUMNS)
    change(columns)
    return columns


def add_roundings(columns):
    columns["score"][0] += 2e-5
    columns["alignment"][0][0] = [0.250001, 0.749999]


@pytest.mark.parametrize(
    ("change", "different"),
    [
        (lambda columns: None, []),
        (add_roundings, []),
        (lambda columns: columns["score"].__setitem__(0, -17.34), ["score"]),
        (lambda columns: columns["score"].__setitem__(1, 0.0), ["score"]),
        (lambda columns: columns["score"].__setitem__(2, float("nan")), ["score"]),
        (lambda columns: columns["hypothesis"].__setitem__(1, "\u200b"), ["hypothesis"]),
        (lambda columns: columns["row"].reverse(), ["row"]),
        (lambda columns: columns["alignment"][0][0].__setitem__(1, 0.76), ["alignment"]),
        (lambda columns: columns["alignment"][0].pop(), ["alignment"]),
        (lambda columns: columns["alignment"].__setitem__(1, None), ["alignment"]),
        (lambda columns: columns.pop("score"), sorted(COLUMNS)),
        (lambda columns: [values.pop() for values in columns.values()], sorted(COLUMNS)),
    ],
)
def test_only_scores_may_differ_and_only_by_rounding(tmp_path, change, different):
    expected = write(tmp_path / "expected.parquet", COLUMNS)
    actual = write(tmp_path / "actual.parquet", changed(change))
    assert find_different_columns(actual, expected) == different
    assert find_different_columns(expected, actual) == different
