from __future__ import annotations

import shlex

import numpy as np
import pytest

from components import predictions
from components.predictions import Row
from pipeline.examples import arguments, examples, lines
from pipeline.typed_rows import Reader
from serving.saved_model import Answer
from tests import fake_models, fake_tasks


def write(folder, features, contract, rows, outputs):
    answers = [Answer(one, contract) for one in outputs]
    predictions.write(folder / predictions.CANDIDATE, features, rows, answers)
    predictions.write_summary(folder, {"contract": contract})
    return folder / predictions.CANDIDATE


def texts(folder, sources):
    return write(
        folder,
        fake_models.FEATURES,
        fake_models.Reverser().contract(),
        [Row({"source": source}, ["r"]) for source in sources],
        [{"translation": "h", "score": -1.0, "source_length": 1}] * len(sources),
    )


def test_long_and_empty_texts_are_passed_over(tmp_path):
    found = examples(texts(tmp_path, ["", "a" * 200, "two\u2028lines", " ", "good"]), {})
    assert found == [{"inputs": {"source": "good"}, "hypothesis": "h", "references": ["r"]}]


def test_the_sentences_of_a_text_stand_on_one_line(tmp_path):
    (found,) = examples(texts(tmp_path, ["One.\nTwo."]), {})
    assert found["inputs"] == {"source": "One. Two."}


def test_where_all_are_long_the_shortest_are_taken(tmp_path):
    found = examples(texts(tmp_path, [letter * (900 - ord(letter)) for letter in "abcdef"]), {})
    assert [example["inputs"]["source"][0] for example in found] == ["d", "e", "f"]
    assert lines(found[0]) == (["d" * 159 + "…"], "h", ["r"])


@pytest.mark.parametrize("name", ["none.parquet", "broken"])
def test_what_cannot_be_read_gives_none(tmp_path, name):
    table = texts(tmp_path, ["a"])
    if name == "broken":
        table.write_bytes(b"PAR1")
    else:
        table = tmp_path / name
    assert examples(table, {}) == []


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["a b"], '"a b"'),
        (["it's"], '"it\'s"'),
        (["$5"], "'$5'"),
        (['a"b'], "'a\"b'"),
        (["-5 °C"], '-- "-5 °C"'),
        (["one", "-2"], '-- "one" "-2"'),
    ],
)
def test_inputs_in_a_command_can_be_copied(typed, words):
    example = {"inputs": dict(enumerate(typed))}
    assert arguments(example) == words
    assert [word for word in shlex.split(words) if word != "--"] == typed


def test_points_are_typed_as_they_are_read(tmp_path):
    contract = fake_tasks.Sorter().contract()
    points = [[0.1, 0.25], [-1.0, 3.0]]
    table = write(
        tmp_path,
        fake_tasks.SORTING,
        contract,
        [Row({"points": points}, [[1, 0]], {"width": None})],
        [{"order": np.array([1, 0], np.int32), "order_length": 2, "score": -0.5}],
    )
    (example,) = examples(table, {})
    assert lines(example) == (["[[0.1, 0.25], [-1.0, 3.0]]"], "1 0", [])
    (row,) = Reader(contract).arguments(shlex.split(arguments(example)))
    assert row.asked == {"points": points}


def test_numbers_are_short_and_never_quite_right(tmp_path):
    table = write(
        tmp_path,
        fake_tasks.SIMILARITY,
        fake_tasks.Matcher().contract(),
        [Row({"first": "a", "second": "b c"}, [4.2])],
        [{"similarity": 4.199999809265137}],
    )
    (example,) = examples(table, {})
    assert lines(example) == (["a", "b c"], "4.2", ["4.2"])
    assert arguments(example) == '"a" "b c"'
