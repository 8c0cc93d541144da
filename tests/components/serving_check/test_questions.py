from __future__ import annotations

import json
from pathlib import Path

import pytest
from tfx.types import standard_artifacts

from components import predictions
from components.predictions import Row
from components.serving_check.questions import in_memory, questions
from serving import saved_model
from tests import fake_models, fake_tasks

NONE = standard_artifacts.Examples()  # not looked at where no image is asked for


def predict(folder: Path, model, features, rows: list[Row]) -> Path:
    loaded = saved_model.load(fake_models.save(model, folder / "model"))
    answers = loaded.ask(loaded.contract["detail"], [row.inputs for row in rows])
    predictions.write(folder / predictions.CANDIDATE, features, rows, answers)
    predictions.write_summary(folder, {"contract": loaded.contract})
    return folder


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
    rows = [Row({"source": "a" * n}, ["b"]) for n in (5, 1, 9, 3, 7, 2, 8, 4, 6, 70)]
    folder = tmp_path_factory.mktemp("texts")
    return predict(folder, fake_models.Reverser(), fake_models.FEATURES, rows)


@pytest.mark.parametrize(("count", "lengths"), [(4, [1, 4, 7, 70]), (1, [1])])
def test_rows_are_spread_over_the_lengths(texts, count, lengths):
    chosen = questions(texts, NONE, count)
    assert [len(row["inputs"]["source"]) for row in chosen] == lengths
    assert chosen[0]["row"] == 1


def test_there_are_no_more_than_there_are(texts):
    assert len(questions(texts, NONE, 99)) == 10


def test_rows_of_the_trainer_say_whose_they_are(tmp_path):
    contract = {"inputs": [{"name": "source", "kind": "text"}]}
    assert in_memory(tmp_path, contract) == []
    file = tmp_path / saved_model.IN_MEMORY
    file.parent.mkdir()
    row = {"inputs": {"source": "ab" * 50}, "answer": {"score": -1.0}, "device": "GPU"}
    file.write_text(json.dumps([row]))
    (first,) = in_memory(tmp_path, contract)
    assert first == {
        **row,
        "row": "0 of the Trainer",
        "shown": f"'{'ab' * 29}a…'",
        "kept_by": "in memory",
    }
    file.write_text(
        json.dumps([{"inputs": {"points": [[0, 1], [1, 0]]}, "answer": {}, "device": "CPU"}])
    )
    contract = fake_tasks.Sorter().contract()
    assert [one["shown"] for one in in_memory(tmp_path, contract)] == ["2 points"]


def test_what_was_answered_is_kept_by_the_names_of_the_outputs(texts):
    first, *_, last = questions(texts, NONE, 99)
    assert first["shown"] == "'a'"
    assert last["shown"] == f"'{'a' * 59}…'"
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


def test_two_texts_are_as_long_as_both(tmp_path):
    pairs = [("abc", "abcdef"), ("a", "b"), ("abcd", "a")]
    rows = [Row({"first": one, "second": other}, [0.5]) for one, other in pairs]
    predict(tmp_path, fake_tasks.Matcher(), fake_tasks.SIMILARITY, rows)
    chosen = questions(tmp_path, NONE, 3)
    assert [row["row"] for row in chosen] == [1, 2, 0]
    assert chosen[0]["shown"] == "'a', 'b'"
    assert chosen[0]["answer"] == {"similarity": 0.0}


def test_points_are_shown_by_their_number(tmp_path):
    rows = [Row({"points": [[0.5, 0.25]] * n}, [[0]], {"width": None}) for n in (4, 2)]
    predict(tmp_path, fake_tasks.Sorter(), fake_tasks.SORTING, rows)
    short, long = questions(tmp_path, NONE, 2)
    assert (short["shown"], long["shown"]) == ("2 points", "4 points")
    assert short["inputs"] == {"points": [[0.5, 0.25]] * 2}
    assert short["answer"]["order"] == [0, 1]
