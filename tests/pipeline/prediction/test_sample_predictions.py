import shlex

import numpy as np
import pytest

from regard.components.common import prediction_table
from regard.components.common.prediction_table import Row
from regard.pipeline.prediction.input_rows import InputParser
from regard.pipeline.prediction.sample_predictions import (
    display_texts,
    select_samples,
    shell_arguments,
)
from regard.serving.saved_model import Prediction
from tests import fake_models, fake_tasks


def write(folder, features, contract, rows, outputs):
    answers = [Prediction(one, contract) for one in outputs]
    prediction_table.write(folder / prediction_table.CANDIDATE, features, rows, answers)
    prediction_table.write_summary(folder, {"contract": contract})
    return folder / prediction_table.CANDIDATE


def texts(folder, sources):
    return write(
        folder,
        fake_models.FEATURES,
        fake_models.Reverser().contract(),
        [Row({"source": source}, ["r"]) for source in sources],
        [{"translation": "h", "score": -1.0, "source_length": 1}] * len(sources),
    )


def test_long_and_empty_texts_are_skipped(tmp_path):
    result = select_samples(texts(tmp_path, ["", "a" * 200, "two\u2028lines", " ", "good"]), {})
    assert result == [{"inputs": {"source": "good"}, "hypothesis": "h", "references": ["r"]}]


def test_several_sentences_are_joined(tmp_path):
    (result,) = select_samples(texts(tmp_path, ["One.\nTwo."]), {})
    assert result["inputs"] == {"source": "One. Two."}


def test_the_shortest_rows_if_all_are_long(tmp_path):
    table = texts(tmp_path, [letter * (900 - ord(letter)) for letter in "abcdef"])
    result = select_samples(table, {})
    assert [example["inputs"]["source"][0] for example in result] == ["d", "e", "f"]
    assert display_texts(result[0]) == (["d" * 159 + "…"], "h", ["r"])


def test_unreadable_files_give_no_samples(tmp_path):
    table = texts(tmp_path, ["a"])
    table.write_bytes(b"PAR1")
    assert select_samples(table, {}) == []
    table.unlink()
    assert select_samples(table, {}) == []


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
def test_shell_arguments_can_be_copied(typed, words):
    example = {"inputs": dict(enumerate(typed))}
    assert shell_arguments(example) == words
    assert [word for word in shlex.split(words) if word != "--"] == typed


def test_points(tmp_path):
    contract = fake_tasks.Sorter().contract()
    points = [[0.1, 0.25], [-1.0, 3.0]]
    table = write(
        tmp_path,
        fake_tasks.SORTING,
        contract,
        [Row({"points": points}, [[1, 0]], {"width": None})],
        [{"order": np.array([1, 0], np.int32), "order_length": 2, "score": -0.5}],
    )
    (example,) = select_samples(table, {})
    assert display_texts(example) == (["[[0.1, 0.25], [-1.0, 3.0]]"], "1 0", [])
    (row,) = InputParser(contract).parse_arguments(shlex.split(shell_arguments(example)))
    assert row.values == {"points": points}


def test_numbers_are_rounded(tmp_path):
    table = write(
        tmp_path,
        fake_tasks.SIMILARITY,
        fake_tasks.Matcher().contract(),
        [Row({"first": "a", "second": "b c"}, [4.2])],
        [{"similarity": 4.199999809265137}],
    )
    (example,) = select_samples(table, {})
    assert display_texts(example) == (["a", "b c"], "4.2", ["4.2"])
    assert shell_arguments(example) == '"a" "b c"'
