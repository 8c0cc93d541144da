import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regard.components.common import prediction_table
from regard.components.common.prediction_table import Row
from regard.core.features import Feature
from regard.core.kinds import TEXT
from regard.serving.saved_model import Prediction
from tests import fake_models, fake_tasks

CONTRACT = fake_models.Reverser().contract()


def make_prediction(number: int, target: int, source: int) -> Prediction:
    outputs = {
        "translation": f"hypothesis {number}",
        "score": -float(number),
        "source_pieces": [f"s{index}" for index in range(source)],
        "source_length": source,
        "target_pieces": [f"t{index}" for index in range(target)],
        "alignment": np.arange(target * source, dtype=np.float32).reshape(target, source),
    }
    return Prediction(outputs, CONTRACT)


def test_a_table_is_read_as_written(tmp_path, monkeypatch):
    monkeypatch.setattr(prediction_table, "ROW_GROUP_SIZE", 2)
    sizes = [(2, 3), (0, 0), (1, 4), (3, 1), (0, 2)]
    rows = [
        Row({"source": f"source {n}"}, [f"reference {n}"], file="test.tsv", line=n + 1)
        for n in range(5)
    ]
    predictions = [make_prediction(n, *size) for n, size in enumerate(sizes)]
    prediction_table.write(tmp_path / "t.parquet", fake_models.FEATURES, rows, predictions)
    table = prediction_table.read(tmp_path / "t.parquet")
    assert list(table) == prediction_table.column_names(tmp_path / "t.parquet")
    assert list(table)[:4] == ["row", "file", "line", "source"]
    assert table["row"] == [0, 1, 2, 3, 4]
    assert table["line"] == [1, 2, 3, 4, 5]
    assert table["references"] == [[f"reference {n}"] for n in range(5)]
    assert table["hypothesis"] == [f"hypothesis {n}" for n in range(5)]
    assert table["size"] == [source - 1 for _, source in sizes]
    for name in ("source_pieces", "source_length"):
        assert table[name] == [entry.outputs[name] for entry in predictions]
    assert table["alignment"] == [entry.outputs["alignment"].tolist() for entry in predictions]
    assert set(prediction_table.read(tmp_path / "t.parquet", ["score"])) == {"score"}
    chosen = prediction_table.rows_at(tmp_path / "t.parquet", [4, 0])
    assert [entry["hypothesis"] for entry in chosen] == ["hypothesis 4", "hypothesis 0"]
    assert prediction_table.rows_at(tmp_path / "t.parquet", []) == []
    few = prediction_table.rows_at(tmp_path / "t.parquet", [2, 3, 2], ["line"])
    assert few == [{"line": 3}, {"line": 4}, {"line": 3}]
    assert prediction_table.row_count(tmp_path / "t.parquet") == 5


def test_parts_in_any_order_are_joined(tmp_path, monkeypatch):
    monkeypatch.setattr(prediction_table, "ROW_GROUP_SIZE", 2)
    rows = [Row({"source": f"s{n}"}, ["r"], file="f", line=n) for n in range(7)]
    predictions = [make_prediction(n, n % 3, n % 4) for n in range(7)]
    prediction_table.write(tmp_path / "whole.parquet", fake_models.FEATURES, rows, predictions)
    windows = [[[3, 0], [2, 1]], [[6, 4, 5]]]
    for window in windows:
        for part in window:
            arguments = [[values[n] for n in part] for values in (rows, predictions)]
            table = prediction_table.make_table(fake_models.FEATURES, part, *arguments)
            pq.write_table(table.replace_schema_metadata({"a": "b"}), tmp_path / f"{part[0]}")
    files = [[tmp_path / f"{part[0]}" for part in window] for window in windows]
    prediction_table.join(tmp_path / "joined.parquet", files)
    joined, whole = (pq.ParquetFile(tmp_path / f"{n}.parquet") for n in ("joined", "whole"))
    assert joined.read().equals(whole.read())
    assert joined.schema_arrow.equals(whole.schema_arrow, check_metadata=True)
    groups = [joined.metadata.row_group(n).num_rows for n in range(joined.num_row_groups)]
    assert groups == [2, 2, 2, 1]


def test_a_failed_join_leaves_nothing(tmp_path):
    part = prediction_table.make_table(
        fake_models.FEATURES, [0], [Row({"source": "a"}, ["b"])], [make_prediction(0, 1, 1)]
    )
    pq.write_table(part, tmp_path / "part")
    with pytest.raises(FileNotFoundError):
        prediction_table.join(tmp_path / "t.parquet", [[tmp_path / "part"], [tmp_path / "missing"]])
    assert [path.name for path in tmp_path.iterdir()] == ["part"]


def test_columns_of_images_and_extras(tmp_path):
    """Two-dimensional attention, several references, an extra, and paths of images."""
    features = [*fake_tasks.CAPTIONING, Feature("tags", TEXT, role="extra", multiple=True)]
    contract = fake_tasks.Namer().contract()
    weights = [np.arange(t * 6, dtype=np.float32).reshape(t, 2, 3) for t in (2, 0, 1)]
    rows = [
        Row(
            {"image": b"bytes"},
            [f"a {n}", "b"][: n + 1],
            {"tags": ["x"] * n},
            {"image": f"{n}.jpg"},
        )
        for n in range(3)
    ]
    predictions = [
        Prediction({"caption": "c", "score": -1.0, "target_pieces": [], "alignment": w}, contract)
        for w in weights
    ]
    prediction_table.write(tmp_path / "t.parquet", features, rows, predictions)
    table = prediction_table.read(tmp_path / "t.parquet")
    assert table["image"] == ["0.jpg", "1.jpg", "2.jpg"]
    assert table["references"] == [["a 0"], ["a 1", "b"], ["a 2", "b"]]
    assert table["tags"] == [[], ["x"], ["x", "x"]]
    assert table["alignment"] == [w.tolist() for w in weights]
    assert table["size"] == [None, None, None]


def test_an_empty_table_has_the_known_columns(tmp_path):
    prediction_table.write(tmp_path / "t.parquet", fake_models.FEATURES, [], [])
    assert prediction_table.read(tmp_path / "t.parquet")["references"] == []
    assert prediction_table.read(tmp_path / "t.parquet", ["references"]) == {"references": []}
    types = prediction_table.make_table(fake_tasks.SORTING, [], [], []).schema
    assert types.field("hypothesis").type == pa.list_(pa.int64())


@pytest.mark.parametrize("rows", [0, 2])
def test_a_missing_column_is_an_error(tmp_path, rows):
    pq.write_table(pa.table({"row": list(range(rows))}), tmp_path / "t.parquet")
    with pytest.raises(KeyError, match="nowhere"):
        prediction_table.read(tmp_path / "t.parquet", ["row", "nowhere"])


def test_duplicate_column_names_are_an_error():
    features = [Feature("score", TEXT), Feature("target", TEXT, role="reference")]
    with pytest.raises(ValueError, match="two columns of the predictions are called score"):
        prediction_table.make_table(features, [], [], [])
