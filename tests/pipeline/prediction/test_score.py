import json
import subprocess
import sys

import pytest

from regard.core.errors import UserError
from regard.pipeline.cli.score import score
from tests import fake_models, fake_tasks


@pytest.fixture(scope="module")
def model(tmp_path_factory, save_model):
    """A model that assigns -0.5 to each token."""
    return str(save_model(tmp_path_factory.mktemp("model") / "m", fake_models.Reverser))


def test_arguments(model, capfd):
    score(model, ["abc", "CBA", "ab", "BAAB"])
    assert capfd.readouterr().out == "-1.500000\n-2.000000\n"


def test_standard_input_keeps_the_order_and_blank_lines(model):
    command = [sys.executable, "-m", "regard.pipeline.cli", "score", model]
    rows = [f"{'a' * (n % 7 + 1)}\t{'A' * (n % 7 + 1)}" for n in range(100)]
    completed = subprocess.run(
        command, input="\n".join([*rows, "", "x\tY"]), text=True, capture_output=True
    )
    assert completed.returncode == 0, completed.stderr
    expected = [f"{-0.5 * (n % 7 + 1):.6f}" for n in range(100)]
    assert completed.stdout.splitlines() == [*expected, "", "-0.500000"]


def test_json(model, capfd):
    score(model, ["abc", "CBA"], as_json=True)
    fields = json.loads(capfd.readouterr().out)
    assert fields == {"source": "abc", "target": "CBA", "score": -1.5}


def test_an_output_without_a_score_is_null(tmp_path, capfd):
    """As the real models give it for a blank input."""
    model = str(fake_models.save(fake_models.Reverser("nan"), tmp_path / "m"))
    score(model, ["abc", "CBA"])
    score(model, ["abc", "CBA"], as_json=True)
    first, second = capfd.readouterr().out.split("\n")[:2]
    assert first == ""
    assert json.loads(second, parse_constant=pytest.fail)["score"] is None


def test_a_row_needs_all_inputs(model):
    with pytest.raises(UserError, match="model has 2 inputs: source, target"):
        score(model, ["abc"])


def test_a_model_without_scores_is_refused(tmp_path, save_model):
    model = str(save_model(tmp_path / "m", fake_tasks.Matcher))
    with pytest.raises(UserError) as caught:
        score(model, ["a", "b"])
    assert caught.value.where == model
