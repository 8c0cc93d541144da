"""`regard tune` as a user runs it: search, kill, resume, run the tuned configuration."""

import json
import time

import pytest

TUNE = """\
tune:
  algorithm: hyperband
  max_epochs: 2
  factor: 2
  objective: chrf
  search_space:
    training.learning_rate: {log: [0.003, 0.03]}   # around the default
    model.encoder.units: {choice: [16, 24]}
"""
TRIALS = 5  # two of one epoch, the better one on to two, and two more of two
TIMEOUT = 300.0

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def config(shell):
    path = shell.folder / shell.configure(epochs=2)
    text = path.read_text().replace(
        "  early_stopping: null", "  early_stopping: null\n  deterministic: true"
    )
    path.write_text(f"# All capitals.\n{text}{TUNE}")
    return "tiny.yaml"


@pytest.fixture(scope="module")
def result(shell, config):
    """The result of a search that was killed after its first trial and resumed."""
    first = shell.start("tune", config)
    trials = "home/pipelines/tiny/tuning/*/trial_*/trial.json"
    deadline = time.monotonic() + TIMEOUT
    while first.poll() is None and time.monotonic() < deadline:
        texts = [path.read_text() for path in shell.folder.glob(trials)]
        if any('"COMPLETED"' in text for text in texts):
            break
        time.sleep(0.05)
    first.kill()
    first.communicate()
    second = shell.start("tune", config, "--json", "--wait")
    out, err = second.communicate(timeout=3 * TIMEOUT)
    assert second.returncode == 0, out + err
    return json.loads(out)


def test_table_has_all_trials_with_the_best_first(shell, result):
    assert len(result["trials"]) == TRIALS
    scores = [trial["score"] for trial in result["trials"]]
    assert scores == sorted(scores, reverse=True)
    assert result["objective"] == "chrf"
    assert result["trials"][0]["metrics"]["chrf"] == scores[0]
    notes = [e["text"] for e in shell.events() if e["kind"] == "note" and e.get("node") == "Tuner"]
    assert notes[0].startswith("resuming the search: ")
    assert shell.states()["Preprocess"] == "cached"


def test_tuned_file_keeps_comments_and_names_its_origin(shell, result):
    text = (shell.folder / "tiny.tuned.yaml").read_text()
    assert text.startswith("# Tuned by `regard tune tiny.yaml` on 2")
    assert "# All capitals." in text
    assert "# around the default" in text
    rate = result["values"]["training.learning_rate"]
    assert f"\n  learning_rate: {rate}\n" in text


def test_ml_metadata_has_the_outputs_of_tfx(shell, result):
    (node,) = (
        e
        for e in shell.events()
        if e["kind"] == "node" and e.get("outputs", {}).get("tuner_results")
    )
    assert set(node["outputs"]) == {"best_hyperparameters", "tuner_results"}
    path = f"{node['outputs']['best_hyperparameters']}/best_hyperparameters.txt"
    with open(path) as file:
        assert (
            json.load(file)["values"]["training.learning_rate"]
            == (result["values"]["training.learning_rate"])
        )


def test_second_search_is_cached_and_overwrites_nothing(shell, result):
    refused = shell.run("tune", "tiny.yaml")
    assert refused.returncode == 2
    assert "The file exists." in refused.stderr
    again = shell.run("tune", "tiny.yaml", "--force", "--json")
    assert json.loads(again.stdout) == result
    assert shell.states()["Tuner"] == "cached"


def test_tuned_file_trains_with_the_same_metrics(shell, result):
    process = shell.run("run", "tiny.tuned.yaml", "--to", "Trainer")
    assert process.returncode == 0, process.stdout + process.stderr
    assert shell.states()["Preprocess"] == "cached"
    folder = shell.home / "pipelines/tiny/artifacts/Trainer/model_run"
    (path,) = folder.glob("*/training.json")
    history = json.loads(path.read_text())["history"]
    best = result["trials"][0]
    entry = next(entry for entry in history if entry["step"] == best["step"])
    assert entry["loss"] == pytest.approx(best["metrics"]["loss"], rel=1e-5)
