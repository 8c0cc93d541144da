"""Rows of Parquet and Arrow files."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regard.components.data.sources import FileGroup
from tests.components.corpora import (
    CAPTIONED,
    POINTED,
    SCORED,
    SUMMARISED,
    read_group,
    unreadable,
)


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
    assert error.problem.remedy == "Set `data.columns: {source: source, target: targets}`."


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
