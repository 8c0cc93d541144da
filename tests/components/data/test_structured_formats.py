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
    TRANSLATION,
    first_error,
    read_group,
    unreadable,
)


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


PAIRS = [{"source": "a", "target": "b"}, {"source": "c", "target": "d"}]


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


VIEWS = [pa.string_view(), pa.binary_view(), pa.large_string(), pa.large_binary()]


@pytest.mark.parametrize("kind", VIEWS, ids=str)
@pytest.mark.parametrize("layout", ["plain", "dictionary"])
def test_arrow_texts_of_every_type(tmp_path, kind, layout):
    texts = pa.array(["ein Satz, der nicht in 12 Bytes passt", None, "ü"], kind)
    if layout == "dictionary":  # Polars writes categories as a dictionary of views
        values = pa.array(["ein Satz, der nicht in 12 Bytes passt", "ü"], kind)
        texts = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.uint32()), values)
    table = pa.table({"source": texts, "target": pa.array(["x", "y", "z"])})
    group = FileGroup("train", "arrow", (str(tmp_path / "a.arrow"),))
    with pa.OSFile(group.files[0], "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
        writer.write_table(table.slice(2))
    rows, problems = read_group(group, bad_rows="skip")
    assert rows == [
        (1, "ein Satz, der nicht in 12 Bytes passt", "x"),
        (3, "ü", "z"),
        (4, "ü", "z"),
    ]
    assert problems.skipped_rows == 1


LISTS = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]


@pytest.mark.parametrize("make", LISTS)
@pytest.mark.parametrize("inner", [pa.string(), pa.string_view()], ids=str)
def test_arrow_lists_of_every_type(tmp_path, make, inner):
    table = pa.table(
        {"text": pa.array(["a"]), "summary": pa.array([["b", "c"]], make(inner))}
        | {"title": pa.nulls(1)}
    )
    path = tmp_path / "a.arrow"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    group = FileGroup("train", "arrow", (str(path),))
    assert read_group(group, features=SUMMARISED)[0] == [(1, "a", ["b", "c"], None)]


@pytest.mark.parametrize(
    "column",
    [
        pa.nulls(1),
        pa.array([{"en": "a", "fr": "b"}]),
        pa.array([[("a", "b")]], pa.map_(pa.string(), pa.string())),
        pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array(["x"])),
        pa.array([1.5]),
    ],
    ids=lambda column: str(column.type)[:10],
)
def test_columns_of_other_types_are_refused(tmp_path, column):
    path = tmp_path / "a.arrow"
    table = pa.table({"source": ["x"], "target": column})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    group = FileGroup("train", "arrow", (str(path),))
    assert "target" in unreadable(group, bad_rows="skip").message


def test_parquet_invalid_utf8(tmp_path):
    group = parquet(tmp_path, source=[b"one", b"\xff"], target=["eins", "zwei"])
    rows, problems = read_group(group, bad_rows="skip")
    assert rows == [(1, "one", "eins")]
    assert problems.examples[0].line == 2


def test_parquet_missing_column(tmp_path):
    error = unreadable(parquet(tmp_path, source=["a"], words=["b"]))
    assert "there is no column for target" in str(error)
    assert error.problem.remedy == "Set `data.columns: {source: source, target: words}`."
    columns = {"source": "source", "target": "target"}
    error = unreadable(parquet(tmp_path, source=["a"], targets=["b"]), columns=columns)
    assert "Did you mean targets?" in error.problem.remedy


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_file_is_damaged(single, kind):
    message = f"not a readable {kind.capitalize()} file"
    assert message in str(unreadable(single(kind, "PAR1 no more")))
    assert message in str(unreadable(single(kind, b"ARROW1\xff\xff\xff\xff")))


TRANSLATIONS = [{"en": "one", "fr": "un"}, {"en": "two", "fr": None}, None, {"en": "x", "fr": "y"}]
NESTED = {"source": "translation.en", "target": "translation.fr"}


@pytest.mark.parametrize("kind", ["stream", "file", "parquet"])
def test_fields_of_columns(tmp_path, kind):
    table = pa.table({"id": range(4), "translation": TRANSLATIONS})
    group = FileGroup("train", "arrow", (str(tmp_path / "a.arrow"),))
    if kind == "parquet":
        group = parquet(tmp_path, translation=TRANSLATIONS)
    else:
        write = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
        with pa.OSFile(group.files[0], "wb") as sink, write(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
    rows, problems = read_group(group, columns=NESTED, bad_rows="skip")
    assert rows == [(1, "one", "un"), (4, "x", "y")]
    assert problems.skipped_rows == 2
    remedy = "Set `data.columns: {source: translation.en, target: translation.fr}` or "
    assert unreadable(group).problem.remedy.startswith(remedy)


def test_columns_with_one_name(tmp_path):
    path = tmp_path / "a.arrow"
    table = pa.Table.from_arrays([pa.array(["a"])] * 3, names=["source", "target", "target"])
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    unreadable(FileGroup("train", "arrow", (str(path),)))


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
        (POINTED, {"points": [[0.0]], "answer": [[0]]}, "not lists of points"),
        (POINTED, {"points": [[[0.0, 0.0]]], "answer": [[0.0]]}, "not lists of whole numbers"),
        (CAPTIONED, {"image": [1], "caption": ["a"]}, "holds int64, not strings"),
        (CAPTIONED, {"image": [["a.jpg"]], "caption": ["a"]}, "not strings"),
    ],
)
def test_parquet_columns_of_wrong_types(tmp_path, features, columns, message):
    assert message in str(unreadable(parquet(tmp_path, **columns), features=features))
