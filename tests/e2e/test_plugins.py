"""A package of another author and a command, through the whole pipeline."""

import json
import sys

import pytest

from tests import plugins
from tests.e2e.conftest import CONFIG

# The length of the output.
SCRIPT = 'import sys\nfor line in sys.stdin: print(len(line.split("\\t")[1]))'


@pytest.mark.slow
def test_a_plugin_trains_and_its_model_is_served_without_it(shell):
    folder = plugins.install(shell.folder / "site")
    text = CONFIG.format(data=shell.folder / "data", epochs=2).replace("translation", "dialogue")
    text = text.replace("  dropout: 0.0\n", "  dropout: 0.0\n  attention: ATTENTION\n")
    text = text.replace("ATTENTION", "{score: {type: bilinear, rank: 5}, alignment: sharp}")
    command = json.dumps([sys.executable, "-c", SCRIPT])
    metrics = "[exact_match, chrf, first_word, length], external: {length: {command: COMMAND}}"
    text = text.replace("[exact_match, chrf]", metrics.replace("COMMAND", command))
    (shell.folder / "chat.yaml").write_text(text)
    without = dict(shell.environment)
    with_plugin = {**without, "PYTHONPATH": f"{without['PYTHONPATH']}:{folder}"}

    result = shell.run("validate", "chat.yaml")
    assert result.returncode == 2
    assert "'dialogue' is not a choice" in result.stderr
    shell.environment = with_plugin
    result = shell.run("run", "chat.yaml")
    assert result.returncode == 0, result.stdout + result.stderr
    (folder_of_results,) = shell.home.glob("pipelines/tiny/artifacts/Evaluator/evaluation/*")
    scores = json.loads((folder_of_results / "metrics.json").read_text())["metrics"]
    assert 0.0 <= scores["first_word"]["value"] <= 1.0
    lengths = [len(x) for x in (folder_of_results / "hypotheses.txt").read_text().splitlines()]
    assert scores["length"]["value"] == pytest.approx(sum(lengths) / len(lengths))

    shell.environment = without
    result = shell.run("predict", "tiny", "1 2 3")
    assert result.returncode == 0, result.stderr
    shell.environment = with_plugin
    layers = folder / "regard_bilinear" / "layers.py"
    layers.write_text(layers.read_text() + "\n# edited\n")
    result = shell.run("run", "chat.yaml")
    assert result.returncode == 0, result.stdout + result.stderr
    states = shell.states()
    assert states["Trainer"] == "done"
    assert states["TokenizerTrainer"] == "cached"
