"""The checks themselves, in this process; that a fresh one runs them is tested with its caller."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
import tensorflow as tf

from serving import check, ops, saved_model
from tests import fake_models
from tests.fake_models import Reverser

LIMITS = {"score_absolute": 1e-3, "score_relative": 1e-4, "alignment": 1e-3, "ties": 0.1}
TEXTS = ["abc", "hello there", "ab"]


def rows() -> list[dict]:
    answers = saved_model.ask(Reverser().answer, TEXTS)
    return [
        {"row": index, "source": text, **dataclasses.asdict(answer)}
        for index, (text, answer) in enumerate(zip(TEXTS, answers, strict=True))
    ]


def run(tmp_path: Path, bug: str = "", align: bool = True, given=None) -> dict:
    model = fake_models.save(Reverser(bug), tmp_path / "model", align)
    request = {"model": str(model), "servers": ["2.19"], "tolerances": LIMITS}
    return check.check({**request, "rows": rows() if given is None else given})


def test_a_good_model_passes(tmp_path):
    result = run(tmp_path)
    assert result["failures"] == []
    assert result["ties"] == []
    assert result["unsupported_ops"] == {"2.19": []}
    assert result["rows"] == len(TEXTS) + 2
    assert result["load_seconds"] > 0
    assert result["first_answer_seconds"] > 0
    assert result["versions"]["tensorflow"] == tf.__version__


@pytest.mark.parametrize(
    ("bug", "words"),
    [
        ("batch", "in a batch and alone: the scores differ"),
        ("flat", r"output score has shape \(\) for a batch of 5"),
        ("nan", r"the empty row \(''\): the score is nan"),
        ("weights", r"align, row 0 \('abc'\): now and of the Predictor: the alignments differ by"),
    ],
)
def test_each_bug_is_found(tmp_path, bug, words):
    assert re.search(words, "\n".join(run(tmp_path, bug)["failures"]))


def test_a_model_that_cannot_take_an_empty_source_fails(tmp_path):
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(tmp_path, "empty")


def test_a_missing_signature_is_named(tmp_path):
    (failure,) = run(tmp_path, align=False)["failures"]
    assert failure == "there is no signature 'align' (there are: serving_default)"


def test_another_answer_than_the_predictors_is_named(tmp_path):
    given = rows()
    given[1] = {**given[1], "hypothesis": "OTHER", "score": -9.0}
    failures = run(tmp_path, given=given)["failures"]
    assert len(failures) == 2  # once a signature
    assert failures[0] == (
        "serving_default, row 1 ('hello there'): now and of the Predictor: the translations"
        " differ: 'EREHT OLLEH' (-5.50000), 'OTHER' (-9.00000)"
    )


def test_a_tie_passes_and_many_do_not(tmp_path):
    given = rows()
    one = [given[0], given[1], {**given[2], "hypothesis": "OTHER"}, *(given[:2] * 4)]
    result = run(tmp_path / "one", given=[{**row, "row": n} for n, row in enumerate(one)])
    assert result["failures"] == []
    assert len(result["ties"]) == 2
    assert "row 2 ('ab')" in result["ties"][0]
    many = [{**row, "hypothesis": "OTHER"} for row in given]
    assert run(tmp_path / "many", given=many)["failures"]


def test_difference():
    answer = rows()[0]
    assert check.difference(answer, answer, LIMITS) == ("", False)
    assert check.difference({**answer, "score": -1.4995}, answer, LIMITS) == ("", False)
    text, tie = check.difference({**answer, "score": -1.51}, answer, LIMITS)
    assert (text, tie) == ("the scores differ: -1.510000 and -1.500000", False)
    text, _ = check.difference({**answer, "source_pieces": ["x"]}, answer, LIMITS)
    assert text.startswith("the source_pieces differ")
    text, _ = check.difference({**answer, "alignment": [[1.0]]}, answer, LIMITS)
    assert text == "the alignments' shapes differ: (1, 1) and (4, 4)"
    nan = [[float("nan")] * 4] * 4
    assert check.difference({**answer, "alignment": nan}, answer, LIMITS)[0]


def test_the_long_source_is_long():
    assert len(check.long_source([{"source": "ab"}])) >= check.LONG_CHARACTERS - 1
    assert len(check.long_source([])) >= check.LONG_CHARACTERS - 1
    assert len(check.long_source([{"source": "x" * 9000}])) == check.LONG_CHARACTERS


def test_used_ops_looks_into_functions(tmp_path):
    model = fake_models.save(Reverser(), tmp_path / "model")
    used = ops.used_ops(model)
    assert {"StringUpper", "UnicodeDecode", "StatefulPartitionedCall"} <= used
    assert ops.core_ops(used) == used
