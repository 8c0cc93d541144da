from __future__ import annotations

import numpy as np
import pytest

from components import predictions
from components.predictions import Row
from serving.saved_model import Answer


def answer(number: int, target: int, source: int) -> Answer:
    weights = np.arange(target * source, dtype=np.float32).reshape(target, source)
    pieces = [f"s{index}" for index in range(source)], [f"t{index}" for index in range(target)]
    return Answer(f"hypothesis {number}", -float(number), *pieces, weights)


def test_a_table_comes_back_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(predictions, "ROWS_A_GROUP", 2)
    sizes = [(2, 3), (0, 0), (1, 4), (3, 1), (0, 2)]
    rows = [Row(f"source {n}", f"reference {n}", "test.tsv", n + 1) for n in range(5)]
    answers = [answer(n, *size) for n, size in enumerate(sizes)]
    predictions.write(tmp_path / "t.parquet", rows, answers)
    table = predictions.read(tmp_path / "t.parquet")
    assert table["row"] == [0, 1, 2, 3, 4]
    assert table["line"] == [1, 2, 3, 4, 5]
    assert table["alignment"] == [entry.alignment.tolist() for entry in answers]
    assert table["source_pieces"] == [entry.source_pieces for entry in answers]
    assert set(predictions.read(tmp_path / "t.parquet", ["score"])) == {"score"}
    chosen = predictions.rows_at(tmp_path / "t.parquet", [4, 0])
    assert [entry["hypothesis"] for entry in chosen] == ["hypothesis 4", "hypothesis 0"]


def test_a_failed_write_leaves_nothing(tmp_path):
    rows = [Row("a", "b"), Row("c", "d")]
    with pytest.raises(ValueError):  # fewer answers than rows
        predictions.write(tmp_path / "t.parquet", rows, [answer(0, 1, 1)])
    assert list(tmp_path.iterdir()) == []


def test_summary(tmp_path):
    predictions.write_summary(tmp_path, {"rows": 3, "production": None})
    assert predictions.read_summary(tmp_path) == {"rows": 3, "production": None}
