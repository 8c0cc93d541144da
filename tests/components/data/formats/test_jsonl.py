"""Rows of files with one JSON object per line."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regard.components.data.sources import FileGroup
from tests.components.corpora import (
    SCORED,
    SUMMARISED,
    TRANSLATION,
    first_error,
    read_group,
    unreadable,
)

PAIRS = [{"source": "a", "target": "b"}, {"source": "c", "target": "d"}]
NESTED = {"source": "translation.en", "target": "translation.fr"}


def test_jsonl_keys(single):
    group = single("jsonl", '{"en": "one\\u2028", "de": "eins", "x": 1}\n')
    rows, _ = read_group(group, columns={"source": "en", "target": "de"})
    assert rows == [(1, "one\u2028", "eins")]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_objects_in_objects(single, tmp_path, kind):
    rows = [{"data": {"translation": {"de": "eins", "en": "one"}, "id": 7}}]
    group = single("jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
        group = FileGroup("train", kind, (str(tmp_path / "a.parquet"),))
    columns = {"source": "data.translation.en", "target": "data.translation.de"}
    assert read_group(group, columns=columns)[0] == [(1, "one", "eins")]
    assert "source: data.translation." in unreadable(group).problem.remedy


@pytest.mark.parametrize("line", ["{}", '{"a": ' * 900 + "1" + "}" * 900])
def test_jsonl_without_texts(single, line):
    problems = read_group(single("jsonl", line + "\n"), bad_rows="skip")[1]
    assert problems.skipped_rows == 1
    assert "Choices" not in str(problems.examples[0].remedy)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"source": "a", "target": ', "not JSON"),
        ('{"source": "a", "target": null}', "no value for 'target'"),
        ('["a", "b"]', "not a JSON object"),
        ("]", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"source": "a", "target": "b", "source": "c"}', "'source' occurs twice"),
        ('{"source": "a", "target": "b", "x": [{"y": 1, "y": 2}]}', "'y' occurs twice"),
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


def test_jsonl_blank_lines_are_no_rows(single):
    row = json.dumps({"source": "a", "target": "b"})
    group = single("jsonl", f"\n{row}\r\n \t\n\r\n{row}\n\n")
    rows, problems = read_group(group)
    assert rows == [(2, "a", "b"), (5, "a", "b")]
    assert problems.rows == 2


@pytest.mark.parametrize(
    ("content", "message", "command"),
    [
        (json.dumps(PAIRS), "a JSON array", "jq -c '.[]' "),
        (json.dumps(PAIRS, indent=2), "a JSON array", "jq -c '.[]' "),
        ("\n [" + json.dumps(PAIRS[0]) + ",\n", "a JSON array", "jq -c '.[]' "),
        ("".join(json.dumps(row, indent=1) + "\n" for row in PAIRS), "several lines", "jq -c . "),
    ],
)
def test_json_of_another_layout(single, content, message, command):
    group = single("jsonl", content)
    error = unreadable(group, bad_rows="skip")
    assert message in str(error)
    assert f"{command}{group.files[0]}" in error.problem.remedy


@pytest.mark.parametrize("summary", ["c\0", ["b", "c\0"], "\ud800"])
def test_jsonl_invalid_characters(single, summary):
    group = single("jsonl", json.dumps({"text": "a", "summary": summary}) + "\n")
    rows, problems = read_group(group, features=SUMMARISED)
    assert rows == []
    assert problems.skipped_rows == len(problems.examples) == 1


@pytest.mark.parametrize(
    ("row", "features", "guess"),
    [
        ({"id": 1, "v": "a", "w": "b"}, TRANSLATION, "{source: v, target: w}"),
        ({"label": 1, "s1": "a", "s2": "b"}, SCORED, "{score: label, one: s1, other: s2}"),
        ({"a:b": "a", "c": "b"}, TRANSLATION, "{source: 'a:b', target: c}"),
    ],
)
def test_other_keys(single, row, features, guess):
    _, problems = read_group(single("jsonl", json.dumps(row) + "\n"), features=features)
    error = first_error(problems)
    assert "there is no key" in error.message
    assert f"`data.columns: {guess}" in error.remedy


@pytest.mark.parametrize(
    ("row", "guess"),
    [
        ({"id": 1, "en": "a", "fr": "b"}, "{source: en, target: fr}"),
        ({"translation": {"de": "a", "en": "b"}}, "{source: translation.de, "),
        ({"input": "a", "text": "b", "target": "c"}, "{source: text, target: target}"),
    ],
)
def test_unclear_keys(single, row, guess):
    error = unreadable(single("jsonl", json.dumps(row) + "\n"))
    assert error.problem.line == 1
    assert f"`data.columns: {guess}" in error.remedy


@pytest.mark.parametrize(
    ("columns", "is_certain"),
    [
        ({"source": "text", "target": "summary"}, True),
        ({"source": "text", "target": "title"}, False),  # the file has a title, which may be meant
    ],
)
def test_configured_keys_that_are_missing(single, columns, is_certain):
    row = {"title": "a", "source": "b", "target": "c"}
    _, problems = read_group(single("jsonl", json.dumps(row) + "\n"), columns=columns)
    setting = "Set `data.columns: {source: source, target: target}`."
    assert (first_error(problems).remedy == setting) is is_certain


def test_common_keys(single):
    row = {"url": "x", "output": "b", "input": "a"}
    assert read_group(single("jsonl", json.dumps(row) + "\n"))[0] == [(1, "a", "b")]


def test_keys_that_do_not_suffice(single):
    _, problems = read_group(single("jsonl", '{"sourc": "a"}\n'))
    assert "Did you mean sourc?" in first_error(problems).remedy


def test_keys_of_inner_objects(single):
    rows = [{"translation": {"en": "a", "fr": "b"}}, {"translation": "x"}, {"translation.en": "c"}]
    group = single("jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    rows, problems = read_group(group, columns=NESTED, bad_rows="skip")
    assert rows == [(1, "a", "b")]
    assert problems.examples[1].text == "there is no key 'translation.fr'"


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


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize("position", [0, 1])
def test_several_targets_of_a_translation_are_an_error_in_any_row(single, tmp_path, kind, position):
    rows = [{"source": ["One.", "Two."], "target": ["Eins."]} for _ in range(2)]
    rows[position]["target"] = ["Eins.", "Zwei."]
    group = single("jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
        group = FileGroup("train", kind, (str(tmp_path / "a.parquet"),))
    valid, problems = read_group(group, bad_rows="skip")
    assert valid == [(2 - position, "One.\nTwo.", "Eins.")]
    error = first_error(problems)
    assert (problems.skipped_rows, problems.examples[0].line) == (1, position + 1)
    assert error.where.startswith(group.files[0])
    assert "list of 2 texts" in str(error)
