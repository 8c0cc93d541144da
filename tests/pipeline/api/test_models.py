"""Finished models from Python, with models that hold next to nothing."""

import numpy as np
import pytest

from regard import UserError, evaluate, load_model, predict, score
from tests import fake_models, fake_tasks


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The root of a registry with small models."""
    root = tmp_path_factory.mktemp("models")
    fake_models.save(fake_models.Reverser(), root / "reverser" / "1")
    fake_models.save(fake_models.Constrained(), root / "constrained" / "1")
    fake_models.save(fake_tasks.Matcher(), root / "matcher" / "1")
    fake_models.save(fake_tasks.Finder(), root / "finder" / "1")
    return root


@pytest.fixture(autouse=True)
def home(models, tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    (tmp_path / "registry").symlink_to(models)


def test_predict(models):
    path = models / "reverser" / "1"
    first, empty, third = predict(path, ["abc", "", "de"])
    assert (first.hypothesis, empty, third.hypothesis) == ("CBA", None, "ED")
    assert isinstance(first.score, float)
    assert first.attention is None
    assert repr(first) == f"Prediction('CBA', score={first.score:.6g})"
    with pytest.raises(UserError, match=r"inputs\[1\]: 2 values, but the model has 1 input"):
        predict(path, ["abc", ("d", "e")])
    with pytest.raises(UserError, match="one text"):
        predict(path, "abc")

    model = load_model("reverser@1")
    (detailed,) = predict(model, ["abc"], attention=True)
    outputs, inputs, weights = detailed.attention
    assert (len(outputs), len(inputs)) == weights.shape
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-5)


def test_models_of_two_tasks_in_one_process():
    matcher, reverser = load_model("matcher"), load_model("reverser")
    equal, other = predict(matcher, [("a", "a"), ["a", "b"]])
    assert equal.hypothesis > other.hypothesis
    assert predict(reverser, ["ab"])[0].hypothesis == "BA"
    assert predict(matcher, [("a", "a")]) == [equal]
    assert repr(matcher) == "ServedModel(task='similarity', device='CPU')"
    with pytest.raises(UserError, match="1 value, but the model has 2 inputs"):
        predict(matcher, ["a"])


def test_lists_of_hypotheses():
    best, empty = predict("finder", [("a bc d", "what"), ("", "")], n_best=2)
    assert empty is None
    assert [one.hypothesis for one in best.hypotheses] == ["a", "bc"]
    assert [one.score for one in best.hypotheses] == [-1.0, -2.0]
    assert (best.hypothesis, best.outputs["begin"]) == ("a", 0)
    with pytest.raises(UserError, match="lists its 3 best outputs, not 4"):
        predict("finder", [("a bc d", "what")], n_best=4)
    with pytest.raises(UserError, match="cannot be combined"):
        predict("finder", [("a bc d", "what")], n_best=2, attention=True)


def test_another_search_of_a_loaded_model_is_refused():
    model = load_model("reverser")
    with pytest.raises(UserError, match="load_model"):
        predict(model, ["a"], search={"beam_size": 2})
    with pytest.raises(UserError, match=r"returns 1 output, not 2[^$]*load_model\(name, {'n_best'"):
        predict(model, ["a"], n_best=2)
    assert [one.hypothesis for one in predict(model, ["ab"], n_best=1)[0].hypotheses] == ["BA"]


def test_constraints(tmp_path):
    (tmp_path / "terms.tsv").write_text("b\tBee\n")
    expected = predict("constrained", ["ab"], prefix="X", phrases=["Y"], glossary={"b": "Bee"})
    read = predict(
        "constrained", ["ab"], prefix="X", phrases=["Y"], glossary=tmp_path / "terms.tsv"
    )
    assert read == expected
    assert expected[0].hypothesis != predict("constrained", ["ab"])[0].hypothesis
    with pytest.raises(UserError, match="does not support constraints"):
        predict("reverser", ["ab"], prefix="X")


def test_score():
    first, empty, third = score("reverser", [("abc", "CBA"), ("", ""), ("ab", "BAAB")])
    assert (first.score, empty, third.score) == (-1.5, None, -2.0)
    assert repr(first) == "Prediction(score=-1.5)"
    with pytest.raises(UserError, match="1 value, but the model has 2 inputs"):
        score("reverser", ["abc"])
    with pytest.raises(UserError, match="cannot score given outputs"):
        score("matcher", [("a", "b")])


def test_evaluate(tmp_path):
    (tmp_path / "test.tsv").write_text("abc\tCBA\nde\tDE\n")
    result = evaluate("reverser", tmp_path / "test.tsv", metrics=["exact_match"])
    assert (result.rows, result.metrics["exact_match"].value) == (2, 0.5)
    assert repr(result) == "Evaluation(rows=2, exact_match=0.5)"
    (tmp_path / "s.txt").write_text("abc\n")
    (tmp_path / "t.txt").write_text("CBA\n")
    sides = {"source": tmp_path / "s.txt", "target": tmp_path / "t.txt"}
    both = evaluate(["reverser", "reverser@1"], sides, metrics=["exact_match"], out=tmp_path / "o")
    assert both.production.metrics["exact_match"].value == 1.0
    assert (tmp_path / "o" / "report.html").is_file()
    with pytest.raises(UserError, match="Give its name or folder"):
        evaluate(load_model("reverser"), sides)
    with pytest.raises(UserError, match="There are 3 models"):
        evaluate(["reverser"] * 3, sides)
