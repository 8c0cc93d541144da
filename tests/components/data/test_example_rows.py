"""Rows of tf.Examples."""

import pytest
import tensorflow as tf

from regard.components.corpus_gen.example_writer import ExampleEncoder
from regard.components.data import example_rows
from regard.components.data.example_rows import ExampleRow, read_rows
from regard.components.data.images import Images
from regard.core.errors import UserError
from regard.core.features import Feature
from regard.core.kinds import IMAGE, NUMBER, POINTS, POSITIONS, TEXT
from regard.core.kinds.image import ImageFile
from tests.components.corpora import TRANSLATION, write_records


def test_read_rows_in_batches(tmp_path, monkeypatch):
    rows = [
        {"source": [f"ü{i}"], "target": ["t"] * (i != 3), "file": ["a.en"], "line": i + 1}
        for i in range(5)
    ]
    path = write_records(tmp_path / "data.gz", rows)
    read = list(read_rows(path, TRANSLATION))
    assert read[4] == ExampleRow([["ü4"], ["t"]], "a.en", 5)
    assert read[3].values == [["ü3"], []]
    monkeypatch.setattr(example_rows, "_RECORDS_PER_READ", 2)
    assert list(read_rows(path, TRANSLATION)) == read


@pytest.mark.parametrize(
    ("name", "positions"),
    [
        ("Split-dev/data_tfrecord-00000-of-00001.gz", [("dev", 1), ("dev", 2)]),
        ("Split-dev/data_tfrecord-00003-of-00012.gz", [("dev-00003", 1), ("dev-00003", 2)]),
        ("rows.gz", [("rows.gz", 1), ("rows.gz", 2)]),
    ],
)
def test_rows_without_a_file_are_named_by_split_and_number(name, positions, tmp_path):
    rows = [{"source": ["a"], "target": ["b"]}, {"source": ["c"], "target": ["d"]}]
    read = list(read_rows(write_records(tmp_path / name, rows), TRANSLATION))
    assert [row.values for row in read] == [[["a"], ["b"]], [["c"], ["d"]]]
    assert [(row.file, row.line) for row in read] == positions


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"english": ["a"], "target": ["b"]}, "no feature 'source'; it has english, target"),
        ({"source": 3, "target": ["b"]}, "'source' is int64_list, not bytes_list"),
    ],
)
def test_a_row_of_another_task_is_an_error(row, error, tmp_path):
    path = write_records(tmp_path / "rows.gz", [row])
    with pytest.raises(UserError, match=error):
        list(read_rows(path, TRANSLATION))


KINDS = [
    Feature("score", NUMBER),
    Feature("image", IMAGE),
    Feature("points", POINTS),
    Feature("answer", POSITIONS, role="reference"),
    Feature("caption", TEXT, role="reference", multiple=True),
]


def test_values_of_every_kind(tmp_path):
    encode = ExampleEncoder(KINDS, "a.tsv", Images(str(tmp_path)))
    (tmp_path / "a.png").write_bytes(b"bytes")
    path = str(tmp_path / "data.gz")
    with tf.io.TFRecordWriter(path, "GZIP") as writer:
        writer.write(encode(1, [3.3, "a.png", [0.0, 0.5, 1.0, 2.0], [1, 0], ["x", "y"]]))
    (row,) = read_rows(path, KINDS)
    image = [ImageFile("a.png", b"bytes")]
    assert row.values[1:] == [image, [0.0, 0.5, 1.0, 2.0], [1, 0], ["x", "y"]]
    assert row.values[0] == [pytest.approx(3.3)]
    texts = ["3.3", "a.png", "2 points: 0 0.5 1 2", "1 0", "x / y"]
    pairs = zip(KINDS, row.values, strict=True)
    assert [feature.kind.format(feature, values) for feature, values in pairs] == texts
    assert (row.file, row.line) == ("a.tsv", 1)


def test_format_missing_values():
    assert [feature.kind.format(feature, []) for feature in KINDS] == [""] * len(KINDS)
