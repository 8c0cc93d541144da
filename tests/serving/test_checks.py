"""The checks themselves, in this process; that a fresh one runs them is tested with its caller."""

import re
from pathlib import Path

import numpy as np
import pytest

from regard.serving import checks, saved_model, supported_ops
from regard.serving.contract import CONTRACT
from regard.serving.session import SessionError
from tests import fake_models, fake_tasks
from tests.fake_models import Reverser

LIMITS = {"absolute": 1e-3, "relative": 1e-4, "array": 1e-3, "ties": 0.1}
TEXTS = ["abc", "hello there", "ab"]


def retained(model, inputs: list[dict], displayed: list[str]) -> list[dict]:
    """What the Predictor would have kept of a model's answers."""
    loaded = saved_model.load(model)
    answers = loaded.predict(loaded.contract["detail"], inputs)
    return [
        {"row": row, "inputs": values, "description": text, "answer": _plain(answer.outputs)}
        for row, (values, text, answer) in enumerate(zip(inputs, displayed, answers, strict=True))
    ]


def _plain(outputs):
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in outputs.items()}


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    return fake_models.save(Reverser(), tmp_path_factory.mktemp("good") / "model")


@pytest.fixture(scope="module")
def rows(good) -> list[dict]:
    return retained(good, [{"source": text} for text in TEXTS], [repr(text) for text in TEXTS])


def run(tmp_path: Path, arguments: list[dict], bug: str) -> dict:
    return query(fake_models.save(Reverser(bug), tmp_path / "model"), arguments)


def query(model: Path, arguments: list[dict], **options) -> dict:
    request = {"model": str(model), "servers": ["2.19"], "tolerances": LIMITS, **options}
    return checks.check({**request, "rows": arguments})


def test_a_good_model_passes(good, rows):
    result = query(good, rows)
    assert result["failures"] == result["ties"] == result["refused"] == []
    assert result["unsupported_ops"] == {"2.19": {}}
    assert result["rows"] == len(TEXTS) + 2
    assert result["load_seconds"] > 0
    assert query(good, rows, has_long_row=False)["rows"] == len(TEXTS) + 1


@pytest.mark.parametrize(
    ("bug", "words"),
    [
        ("batch", "in a batch and alone: the scores differ"),
        ("flat", r"output score has shape \(\) for a batch of 5"),
        ("nan", r"row 0 \('abc'\): the score is nan"),
        ("score", r"row 0 \('abc'\): rescored and from the search: the scores differ: -3"),
        ("weights", r"align, row 0 \('abc'\): now and of the Predictor: the alignments differ by"),
    ],
)
def test_each_bug_is_found(tmp_path, rows, bug, words):
    assert re.search(words, "\n".join(run(tmp_path, rows, bug)["failures"]))


def test_a_hypothesis_of_other_tokens_is_not_compared(tmp_path, rows):
    assert run(tmp_path, rows, "spelling")["failures"] == []


def test_a_model_that_cannot_take_an_empty_source_fails(tmp_path, rows):
    with pytest.raises(SessionError):
        run(tmp_path, rows, "empty")


def test_a_model_may_refuse_the_long_row(tmp_path, rows):
    result = run(tmp_path, rows, "refuse")
    assert result["failures"] == []
    assert result["refused"] == ["the long row"]
    assert result["rows"] == len(TEXTS) + 1


def test_a_missing_signature_is_named(tmp_path, rows):
    model = fake_models.save(Reverser(), tmp_path / "model", align=False)
    (failure,) = query(model, rows)["failures"]
    assert failure == "There is no signature 'align'. The signatures are: score, serving_default."


def test_a_model_without_a_contract_fails(tmp_path, rows):
    model = fake_models.save(Reverser(), tmp_path / "model")
    (model / CONTRACT).unlink()
    (failure,) = query(model, rows)["failures"]
    assert "which describes its signatures" in failure


def test_a_contract_without_the_default_signature_fails(tmp_path, rows):
    contract = Reverser().contract()
    del contract["signatures"]["serving_default"]
    model = fake_models.save(Reverser(), tmp_path / "model", contract=contract)
    assert query(model, rows)["failures"] == [
        "There is no signature 'serving_default'. The signatures are: align, score."
    ]


def changed(row: dict, **answer) -> dict:
    return {**row, "answer": {**row["answer"], **answer}}


def test_another_answer_than_the_predictors_is_named(good, rows):
    arguments = [rows[0], changed(rows[1], translation="OTHER", score=-9.0), rows[2]]
    failures = query(good, arguments)["failures"]
    assert len(failures) == 2  # once a signature
    assert failures[0] == (
        "serving_default, row 1 ('hello there'): now and of the Predictor: the translations"
        " differ: 'EREHT OLLEH' (-5.50000), 'OTHER' (-9.00000)"
    )


def test_another_answer_than_in_memory_is_named(good, rows):
    in_memory = {**changed(rows[0], score=-9.0), "row": "0 of the Trainer", "kept_by": "in memory"}
    assert query(good, [in_memory])["failures"][0] == (
        "serving_default, row 0 of the Trainer ('abc'): now and in memory: the scores differ:"
        " -1.500000 and -9.000000"
    )


def test_a_tie_passes_and_many_do_not(good, rows):
    with_a_tie = [rows[0], rows[1], changed(rows[2], translation="OTHER"), *(rows[:2] * 4)]
    result = query(good, [{**row, "row": n} for n, row in enumerate(with_a_tie)])
    assert result["failures"] == []
    assert len(result["ties"]) == 2
    assert "row 2 ('ab')" in result["ties"][0]
    many = [changed(row, translation="OTHER") for row in rows]
    assert query(good, many)["failures"]


def test_two_texts_are_both_empty_and_both_long(tmp_path):
    model = fake_models.save(fake_tasks.Matcher(), tmp_path / "model")
    inputs = [{"first": "abcd", "second": "abxy"}, {"first": "a", "second": "b"}]
    arguments = retained(model, inputs, ["'abcd', 'abxy'", "'a', 'b'"])
    result = query(model, arguments)
    assert (result["failures"], result["ties"], result["rows"]) == ([], [], 4)


def test_points_are_sent_unchanged(tmp_path):
    model = fake_models.save(fake_tasks.Sorter(), tmp_path / "model")
    inputs = [{"points": [[0.5, 0], [0.25, 1]]}, {"points": [[n / 8, 0.0] for n in range(8)]}]
    arguments = retained(model, inputs, ["2 points", "8 points"])
    result = query(model, arguments)
    assert (result["failures"], result["rows"]) == ([], 2)


def test_used_ops_looks_into_functions(good):
    used = supported_ops.used_ops(good)
    assert {"StringUpper", "UnicodeDecode", "StatefulPartitionedCall"} <= set(used)
    assert supported_ops.core_ops(used) == set(used)
    assert used["StringUpper"] == "StringUpper"
