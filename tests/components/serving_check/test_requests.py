import json
from pathlib import Path

import pytest
from tfx.types import standard_artifacts

from regard.components.common import prediction_table
from regard.components.common.prediction_table import Row
from regard.components.serving_check.executor import exported_rows, sample_rows
from regard.serving import saved_model
from regard.serving.contract import IN_MEMORY
from tests import fake_models, fake_tasks

NONE = standard_artifacts.Examples()  # unused without image inputs


def predict(folder: Path, model, features, rows: list[Row]) -> Path:
    loaded = saved_model.load(fake_models.save(model, folder / "model"))
    predictions = loaded.predict(loaded.contract["detail"], [row.inputs for row in rows])
    prediction_table.write(folder / prediction_table.CANDIDATE, features, rows, predictions)
    prediction_table.write_summary(folder, {"split": "test", "contract": loaded.contract})
    return folder


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
    rows = [Row({"source": "a" * n}, ["b"]) for n in (5, 1, 9, 3, 7, 2, 8, 4, 6, 70)]
    folder = tmp_path_factory.mktemp("texts")
    return predict(folder, fake_models.Reverser(), fake_models.FEATURES, rows)


@pytest.mark.parametrize(
    ("count", "lengths"), [(4, [1, 4, 7, 70]), (1, [1]), (99, [*range(1, 10), 70])]
)
def test_sampled_rows_cover_all_lengths(texts, count, lengths):
    rows = sample_rows(texts, NONE, count)
    assert [len(row["inputs"]["source"]) for row in rows] == lengths
    assert rows[0]["row"] == 1


def test_rows_of_the_trainer_are_labelled(tmp_path):
    contract = {"inputs": [{"name": "source", "kind": "text"}]}
    assert exported_rows(tmp_path, contract) == []
    file = tmp_path / IN_MEMORY
    file.parent.mkdir()
    row = {"inputs": {"source": "ab" * 50}, "answer": {"score": -1.0}, "device": "GPU"}
    file.write_text(json.dumps([row]))
    (first,) = exported_rows(tmp_path, contract)
    assert first == {
        **row,
        "row": "0 of the Trainer",
        "description": f"'{'ab' * 29}a…'",
        "kept_by": "in memory",
    }
    file.write_text(
        json.dumps([{"inputs": {"points": [[0, 1], [1, 0]]}, "answer": {}, "device": "CPU"}])
    )
    contract = fake_tasks.Sorter().contract()
    assert [row["description"] for row in exported_rows(tmp_path, contract)] == ["2 points"]


def test_rows_contain_the_predicted_outputs(texts):
    first, *_, last = sample_rows(texts, NONE, 99)
    assert first["description"] == "'a'"
    assert last["description"] == f"'{'a' * 59}…'"
    assert first["answer"] == {
        "translation": "A",
        "score": -0.5,
        "source_pieces": ["a", "</s>"],
        "source_length": 2,
        "source_cut": 0,
        "target_pieces": ["A", "</s>"],
        "target_length": 2,
        "alignment": [[1.0, 0.0], [0.0, 1.0]],
    }
    json.dumps(first)


def test_the_length_of_text_pairs_is_their_sum(tmp_path):
    pairs = [("abc", "abcdef"), ("a", "b"), ("abcd", "a")]
    rows = [Row({"first": one, "second": other}, [0.5]) for one, other in pairs]
    predict(tmp_path, fake_tasks.Matcher(), fake_tasks.SIMILARITY, rows)
    rows = sample_rows(tmp_path, NONE, 3)
    assert [row["row"] for row in rows] == [1, 2, 0]
    assert rows[0]["description"] == "'a', 'b'"
    assert rows[0]["answer"] == {"similarity": 0.0}


def test_points_are_summarized_by_their_number(tmp_path):
    rows = [Row({"points": [[0.5, 0.25]] * n}, [[0]], {"width": None}) for n in (4, 2)]
    predict(tmp_path, fake_tasks.Sorter(), fake_tasks.SORTING, rows)
    short, long = sample_rows(tmp_path, NONE, 2)
    assert (short["description"], long["description"]) == ("2 points", "4 points")
    assert short["inputs"] == {"points": [[0.5, 0.25]] * 2}
    assert short["answer"]["order"] == [0, 1]
