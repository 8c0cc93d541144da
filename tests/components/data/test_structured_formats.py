"""Rows of JSON lines and Parquet."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regard.components.data.sources import FileGroup
from tests.components.corpora import (
    CAPTIONED,
    POINTED,
    SCORED,
    SUMMARISED,
    first_error,
    read_group,
    unreadable,
)


def test_jsonl_keys(single):
    group = single("jsonl", '{"en": "one\\u2028", "de": "eins", "x": 1}\n')
    rows, _ = read_group(group, columns={"source": "en", "target": "de"})
    assert rows == [(1, "one\u2028", "eins")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"source": "a", "target": ', "not JSON"),
        ('{"source": "a", "target": null}', "no value for 'target'"),
        ('["a", "b"]', "not a JSON object"),
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_jsonl_invalid_rows(single, line, message):
    good = json.dumps({"source": "a", "target": "b"})
    group = single("jsonl", f"{good}\n{line}\n{good}\n")
    rows, problems = read_group(group)
    assert [row[0] for row in rows] == [1, 3]
    error = first_error(problems)
    assert error.where.endswith("a.jsonl:2")
    assert message in error.message


@pytest.mark.parametrize("summary", ["c\0", ["b", "c\0"], "\ud800"])
def test_jsonl_invalid_characters(single, summary):
    group = single("jsonl", json.dumps({"text": "a", "summary": summary}) + "\n")
    rows, problems = read_group(group, features=SUMMARISED)
    assert rows == []
    assert problems.skipped_rows == len(problems.examples) == 1


def parquet(tmp_path, **columns) -> FileGroup:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=2)
    return FileGroup("train", "parquet", (str(path),))


def test_parquet_columns(tmp_path):
    group = parquet(
        tmp_path,
        id=[1, 2, 3],
        target=pa.array(["eins", None, "drei"]).dictionary_encode(),
        source=["one", "two", "three"],
    )
    rows, problems = read_group(group, bad_rows="skip")
    assert rows == [(1, "one", "eins"), (3, "three", "drei")]
    assert problems.examples[0].text == "no value for 'target'"


def test_parquet_invalid_utf8(tmp_path):
    group = parquet(tmp_path, source=[b"one", b"\xff"], target=["eins", "zwei"])
    rows, problems = read_group(group, bad_rows="skip")
    assert rows == [(1, "one", "eins")]
    assert problems.examples[0].line == 2


def test_parquet_missing_column(tmp_path):
    error = unreadable(parquet(tmp_path, source=["a"], targets=["b"]))
    assert "there is no column 'target'" in str(error)
    assert "Did you mean targets?" in error.problem.remedy


def test_file_is_not_parquet(single):
    assert "not a readable Parquet file" in str(unreadable(single("parquet", "PAR1 no more")))


def test_jsonl_lists_of_texts(single):
    rows = [
        {"text": ["One.", "", "Two."], "summary": ["a", "b"], "title": "x"},
        {"text": "One.", "summary": "a"},
        {"text": "One.", "summary": ["c"], "title": None},
    ]
    group = single("jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert read_group(group, features=SUMMARISED)[0] == [
        (1, "One.\nTwo.", ["a", "b"], "x"),
        (2, "One.", ["a"], None),  # JSON rows with the same input are not joined
        (3, "One.", ["c"], None),
    ]


def test_parquet_points_positions_and_numbers(tmp_path):
    square = [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    pairs = pa.array([square, square], pa.list_(pa.list_(pa.float32(), 2)))
    group = parquet(tmp_path, points=pairs, answer=pa.array([[0, 2], [3]], pa.list_(pa.int32())))
    rows, problems = read_group(group, features=POINTED, bad_rows="skip")
    assert rows == [(1, [0, 0, 0, 1, 1, 1], [0, 2])]
    assert problems.examples[0].text == "invalid position 3: there are only 3 points"
    scores = pa.array([1.5, 2]).cast(pa.decimal128(4, 2))
    group = parquet(tmp_path, score=scores, one=["a", "b"], other=["c", "d"])
    assert read_group(group, features=SCORED)[0] == [(1, 1.5, "a", "c"), (2, 2.0, "b", "d")]


def test_parquet_lists_of_texts(tmp_path):
    summaries = pa.array([["a", "b"], ["c"], None]).cast(pa.list_(pa.dictionary("int32", "string")))
    group = parquet(tmp_path, text=[b"x", b"y", b"z"], summary=summaries)
    rows, problems = read_group(group, features=SUMMARISED, bad_rows="skip")
    assert rows == [(1, "x", ["a", "b"], None), (2, "y", ["c"], None)]
    assert problems.examples[0].text == "no value for 'summary'"
    titled = parquet(tmp_path, text=["x"], summary=["a"], title=["t"])
    assert read_group(titled, features=SUMMARISED)[0] == [(1, "x", ["a"], "t")]
    columns = {"text": "text", "summary": "summary", "title": "headline"}
    assert "there is no column 'headline'" in str(
        unreadable(titled, features=SUMMARISED, columns=columns)
    )


@pytest.mark.parametrize(
    ("features", "columns", "message"),
    [
        (SCORED, {"score": ["a"], "one": ["b"], "other": ["c"]}, "holds string, not numbers"),
        (POINTED, {"points": [[0.0]], "answer": [[0]]}, "not lists of [x, y]"),
        (POINTED, {"points": [[[0.0, 0.0]]], "answer": [[0.0]]}, "not lists of whole numbers"),
        (CAPTIONED, {"image": [1], "caption": ["a"]}, "holds int64, not strings"),
        (CAPTIONED, {"image": [["a.jpg"]], "caption": ["a"]}, "not strings"),
    ],
)
def test_parquet_columns_of_wrong_types(tmp_path, features, columns, message):
    assert message in str(unreadable(parquet(tmp_path, **columns), features=features))
