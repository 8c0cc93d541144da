"""`regard tune` as a user runs it: search, stop, go on, run what was found."""

import json
import time

import pytest

TUNE = """\
tune:
  algorithm: hyperband
  epochs: 2
  factor: 2
  parallel: 2
  objective: chrf
  over:
    training.learning_rate: {log: [0.003, 0.03]}   # around the usual
    model.encoder.units: {choice: [16, 24]}
"""
TRIALS = 5  # two of one epoch, the better one on to two, and two more of two
PATIENCE = 300.0

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def config(shell):
    path = shell.folder / shell.configure(epochs=2)
    text = path.read_text().replace(
        "  early_stop: null", "  early_stop: null\n  deterministic: true"
    )
    path.write_text(f"# All capitals.\n{text}{TUNE}")
    return "tiny.yaml"


@pytest.fixture(scope="module")
def found(shell, config):
    """What a search found that was killed after its first trial and started again."""
    first = shell.start("tune", config)
    journal = "home/pipelines/tiny/tuning/*/journal.json"
    deadline = time.monotonic() + PATIENCE
    while first.poll() is None and time.monotonic() < deadline:
        texts = [path.read_text() for path in shell.folder.glob(journal)]
        if any('"end"' in text for text in texts):
            break
        time.sleep(0.05)
    first.kill()
    first.communicate()
    second = shell.start("tune", config, "--json", "--wait")
    out, err = second.communicate(timeout=3 * PATIENCE)
    assert second.returncode == 0, out + err
    return json.loads(out)


def test_all_trials_are_there_the_best_first(shell, found):
    assert len(found["trials"]) == TRIALS
    scores = [trial["score"] for trial in found["trials"]]
    assert scores == sorted(scores, reverse=True)
    assert found["objective"] == "chrf"
    assert found["trials"][0]["measures"]["chrf"] == scores[0]
    notes = [e["text"] for e in shell.events() if e["kind"] == "note" and e.get("node") == "Tuner"]
    assert notes[0].startswith("goes on; of its trials ")
    assert shell.states()["Preprocess"] == "cached"


def test_the_file_says_where_its_values_are_from(shell, found):
    text = (shell.folder / "tiny.tuned.yaml").read_text()
    assert text.startswith("# `regard tune tiny.yaml` found these values on 2")
    assert "# All capitals." in text
    assert "# around the usual" in text
    rate = found["values"]["training.learning_rate"]
    assert f"\n  learning_rate: {rate}\n" in text


def test_ml_metadata_has_what_tfx_makes(shell, found):
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
            == (found["values"]["training.learning_rate"])
        )


def test_a_second_time_it_is_cached_and_writes_over_nothing(shell, found):
    refused = shell.run("tune", "tiny.yaml")
    assert refused.returncode == 2
    assert "there is a file already" in refused.stderr
    again = shell.run("tune", "tiny.yaml", "--force", "--json")
    assert json.loads(again.stdout) == found
    assert shell.states()["Tuner"] == "cached"


def test_the_file_runs_and_finds_the_same_values(shell, found):
    done = shell.run("run", "tiny.tuned.yaml", "--to", "Trainer")
    assert done.returncode == 0, done.stdout + done.stderr
    assert shell.states()["Preprocess"] == "cached"
    folder = shell.home / "pipelines/tiny/artifacts/Trainer/model_run"
    (path,) = folder.glob("*/training.json")
    history = json.loads(path.read_text())["history"]
    best = found["trials"][0]
    entry = next(entry for entry in history if entry["step"] == best["step"])
    assert entry["loss"] == pytest.approx(best["measures"]["loss"], rel=1e-5)
