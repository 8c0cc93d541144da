"""Runs that publish an ensemble of the trained model and of a published one."""

import json

import numpy as np
import pytest

from regard.pipeline.config.config import NODES
from regard.serving.saved_model import load
from tests.e2e.conftest import Shell
from tests.tolerances import assert_close

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(shell):
    """Runs the pipeline with a seed and an ensemble."""
    path = shell.folder / shell.configure(epochs=2)
    text = path.read_text().replace("tokenize: none", "tokenize: none, production: null")

    def run(seed, ensemble="[]"):
        keys = f"early_stopping: null\n  seed: {seed}\n  ensemble: {ensemble}"
        path.write_text(text.replace("early_stopping: null", keys))
        return shell.run("run", "tiny.yaml")

    return run


@pytest.fixture(scope="module")
def runs(run):
    """One model, an ensemble with it, the same again, and the ensemble's own model alone."""
    results = [run(17), run(18, "[tiny@1]"), run(18, "[tiny@1]"), run(18)]
    assert [result.returncode for result in results] == [0] * 4, [
        result.stderr for result in results
    ]
    return results


def trainings(shell: Shell) -> list[dict]:
    """The records of the Trainer, oldest first."""
    folder = shell.home / "pipelines/tiny/artifacts/Trainer/model_run"
    paths = sorted(folder.glob("*/training.json"), key=lambda path: int(path.parent.name))
    return [json.loads(path.read_text()) for path in paths]


def test_probabilities_are_the_means_of_the_models(shell, runs):
    registry = shell.home / "registry/tiny"
    rows = [{"source": word, "target": word.upper()} for word in ("abc", "hgfe", "dada")]
    published, *members = (
        [
            prediction.outputs["target_scores"]
            for prediction in load(registry / version).predict("score", rows)
        ]
        for version in ("2", "1", "3")
    )
    # Of each token the mean probability of both models, given the same tokens before it.
    for ours, *single in zip(published, *members, strict=True):
        assert_close(np.exp(ours), np.mean(np.exp(single), axis=0), roundings=1000)
        assert not np.allclose(*single, atol=1e-3)
    record = json.loads((registry / "2/regard.json").read_text())
    assert record["config"]["training"]["ensemble"] == ["tiny@1"]
    (origin,) = (event for event in shell.events(1) if event["kind"] == "origin")
    assert [member["path"] for member in origin["ensemble"]] == [str(registry / "1")]


def test_same_ensemble_is_cached(shell, runs):
    assert shell.states(2) == dict.fromkeys(NODES, "cached")


def test_change_of_the_ensemble_does_not_train(shell, runs):
    _, ensemble, alone = trainings(shell)
    assert (ensemble["ensemble"], alone["ensemble"]) == (["tiny@1"], [])
    for key in ("steps", "seconds", "history"):
        assert ensemble[key] == alone[key]
    assert shell.states(3)["Preprocess"] == "cached"
    assert shell.states(3)["Trainer"] != "cached"


def test_members_that_cannot_decode_with_the_model_are_refused(shell, runs, run):
    ensemble = run(18, "[tiny@2]")
    assert ensemble.returncode == 2
    assert "training.ensemble" in ensemble.stderr
    assert "tiny@2 is an ensemble" in ensemble.stderr
    with open(shell.folder / "data/train.tsv", "a") as file:
        file.writelines(f"{word}\t{word.upper()}\n" for word in ("xa", "xyb", "cyx", "dax") * 9)
    other = run(18, "[tiny@1]")
    assert other.returncode == 2
    assert "training.ensemble" in other.stdout
    message = "The source vocabularies of this run and tiny@1 differ."
    assert message in " ".join(other.stdout.split())
