"""Runs that remain after `regard clean` can be resumed, reported, compared and traced."""

import json

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cleaned(shell):
    """Three runs with one corpus, of which the first and the version of the second are removed."""
    for epochs in (1, 2, 3):
        result = shell.run("run", shell.configure(epochs))
        assert result.returncode == 0, result.stderr
    assert shell.run("registry", "prune", "tiny", "--keep", "1", "--yes").returncode == 0
    result = shell.run("clean", "--keep", "2", "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)["pipelines"][0]


def test_only_the_oldest_run_is_removed(shell, cleaned):
    reasons = list(cleaned["runs"].values())
    assert reasons == [None, "among the newest 2", "among the newest 2"]
    assert cleaned["bytes"] > 200_000
    artifacts = shell.home / "pipelines/tiny/artifacts"
    assert len(list((artifacts / "CorpusGen/examples").iterdir())) == 1  # all runs used it
    assert len(list((artifacts / "Trainer/model").iterdir())) == 2


def test_kept_runs_are_reported(shell, cleaned):
    second, third = list(cleaned["runs"])[1:]
    for run in (second, third):
        output = shell.folder / f"{run}.html"
        assert shell.run("report", run, "-o", str(output)).returncode == 0
        assert output.stat().st_size > 50_000


def test_the_kept_version_is_traced_to_the_data(shell, cleaned):
    lineage = json.loads(shell.run("lineage", "tiny", "--json").stdout)
    assert lineage["run"]["id"] == list(cleaned["runs"])[2]
    assert [node["node"] for node in lineage["nodes"]][-1] == "CorpusGen"
    assert all(output["exists"] for node in lineage["nodes"] for output in node["outputs"])
    assert lineage["data"]["rows"]["train"] == 900
    assert [text for text in lineage["missing"] if "not in the registry" not in text] == []


def test_kept_runs_are_found_in_the_cache(shell, cleaned):
    for epochs in (3, 2):
        result = shell.run("run", shell.configure(epochs), "--to", "Evaluator")
        assert result.returncode in (0, 3), result.stderr
        states = shell.states()
        executed = {node for node in states if states[node] != "cached"}
        # These depend on the version in production.
        assert executed <= {"ExampleValidator", "Predictor", "Evaluator"}


def test_a_removed_training_runs_again(shell, cleaned):
    result = shell.run("run", shell.configure(1), "--to", "Trainer")
    assert result.returncode in (0, 3), result.stderr
    states = shell.states()
    assert (states["Preprocess"], states["Trainer"]) == ("cached", "done")
