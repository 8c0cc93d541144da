"""Searches: resuming, continuing, failing; with simulated and with real trials."""

import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from regard.components.settings.trainer import RunInputs, TrainingData
from regard.components.settings.tune import MAX_SEED
from regard.components.tuner import search as search_module
from regard.components.tuner.space import Dimension, SearchSpace, replace_values
from regard.components.tuner.trial import (
    TrialResult,
    TrialTask,
    checkpoint_folder,
    run_trial,
    write_state,
)
from regard.core import events
from regard.core.errors import UserError
from tests.components.tuner import tiny

ROOT = Path(__file__).parents[3]
TIMEOUT = 240.0  # seconds
SIZE = Dimension("model.embedding", choices=[1, 2, 3])
SPACE = SearchSpace((Dimension("training.learning_rate", 1e-4, 1e-1, log=True), SIZE))
NO_SOURCE = TrainingData([], [], "")
# The first six trials of a Bayesian search are random; each further one fits a Gaussian process.
SIZES = {"random": {"max_trials": 9}, "bayesian": {"max_trials": 7}}
HYPERBAND = {"max_trials": None, "max_epochs": 4, "factor": 2}


def section(algorithm, **changes):
    sizes = SIZES.get(algorithm, HYPERBAND)
    return tiny.tune(algorithm=algorithm, **{**sizes, **changes})


def loss(config):
    """A loss that is minimal at a learning rate of 0.01 and an embedding of 2."""
    rate, size = config["training"]["learning_rate"], config["model"]["embedding"]
    return abs(rate - 0.01) * 10 + abs(size - 2) + 1.0


@pytest.fixture
def simulated(monkeypatch):
    """Replaces trials; ``behaviour`` gives a result or raises, and is called with their config."""
    state = {"behaviour": lambda config: TrialResult(score=loss(config)), "tasks": []}

    def run(task, on_progress):
        Path(task.folder).mkdir(exist_ok=True)
        state["tasks"].append(task)
        result = state["behaviour"](task.config)
        write_state(Path(task.folder, "result.json"), dataclasses.asdict(result))
        return result

    monkeypatch.setattr(search_module, "run_trial", run)
    return state


def completed_search(folder, tune, space=SPACE):
    search = tiny.search(folder, NO_SOURCE, tune, space)
    search.search()
    return search


def search_rows(*arguments):
    return completed_search(*arguments).rows()


def after(count, then):
    """A behaviour that fails with ``then`` once ``count`` trials have completed."""
    remaining = [count]

    def behave(config):
        remaining[0] -= 1
        if remaining[0] < 0:
            if isinstance(then, BaseException):
                raise then
            return then
        return TrialResult(score=loss(config))

    return behave


@pytest.mark.parametrize("algorithm", ["random", "hyperband"])
def test_interrupted_search_resumes_with_the_same_trials(simulated, tmp_path, algorithm):
    tune = section(algorithm)
    whole = search_rows(tmp_path / "whole", tune)
    complete = simulated["behaviour"]
    for _ in range(3):
        simulated["behaviour"] = after(2, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            search_rows(tmp_path, tune)
    simulated["behaviour"] = complete
    assert search_rows(tmp_path, tune) == whole
    simulated["behaviour"] = after(0, KeyboardInterrupt())
    assert search_rows(tmp_path, tune) == whole  # no trial runs again


def test_bayesian_search_resumes_and_improves(simulated, tmp_path):
    tune = section("bayesian", max_trials=10)
    complete = simulated["behaviour"]
    simulated["behaviour"] = after(7, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        search_rows(tmp_path, tune)
    simulated["behaviour"] = complete
    rows = search_rows(tmp_path, tune)
    assert [row["state"] for row in rows] == ["completed"] * 10
    assert min(row["score"] for row in rows) < 1.2


@pytest.mark.parametrize("step", ["trial.json", "oracle.json"])
def test_kill_while_a_trial_is_created_loses_no_trial(simulated, tmp_path, monkeypatch, step):
    whole = search_rows(tmp_path / "whole", section("random"))
    writes, write = [], search_module.write_state

    def killed(path, state):
        writes.append(path)
        if len(writes) > 12 and Path(path).name == step:
            raise KeyboardInterrupt
        write(path, state)

    with monkeypatch.context() as patch:
        patch.setattr(search_module, "write_state", killed)
        with pytest.raises(KeyboardInterrupt):
            search_rows(tmp_path, section("random"))
    assert search_rows(tmp_path, section("random")) == whole


@pytest.mark.parametrize("name", ["oracle", "tuner0", "trial_3/trial", "trial_3/result"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: b"[1]",
        lambda content: b"\xff" + content,
        lambda content: re.sub(rb"1(?=[^1]*$)", b"2", content),
    ],
)
def test_damaged_files_are_named(simulated, tmp_path, name, damage):
    complete = simulated["behaviour"]
    simulated["behaviour"] = after(6, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        search_rows(tmp_path, section("random"))
    simulated["behaviour"] = complete
    path = tmp_path / "search" / f"{name}.json"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError) as caught:
        search_rows(tmp_path, section("random"))
    assert caught.value.where == str(path)
    assert "--restart" in caught.value.remedy


def test_seed_determines_the_trials(simulated, tmp_path):
    one, other = (search_rows(tmp_path / str(n), section("random", seed=n)) for n in (0, 1))
    assert one != other
    assert search_rows(tmp_path / "again", section("random", seed=0)) == one


@pytest.mark.parametrize("algorithm", ["random", "bayesian", "hyperband"])
def test_maximum_seed(simulated, tmp_path, algorithm):
    assert len(search_rows(tmp_path, section(algorithm, seed=MAX_SEED))) >= 7


def test_search_resumes_with_more_trials_or_iterations(simulated, tmp_path):
    few = search_rows(tmp_path, section("random", max_trials=4))
    more = search_rows(tmp_path, section("random", max_trials=12))
    assert (len(few), len(more)) == (4, 12)
    assert more[:4] == few
    assert search_rows(tmp_path, section("random", max_trials=2)) == more
    once = search_rows(tmp_path / "hyperband", section("hyperband"))
    twice = search_rows(tmp_path / "hyperband", section("hyperband", iterations=2))
    assert twice[: len(once)] == once
    assert len(twice) == 2 * len(once)


@pytest.mark.parametrize(
    ("epochs", "factor", "trials", "trained_epochs"),
    [(3, 3, 6, 11), (4, 2, 15, 30), (9, 3, 23, 75), (10, 4, 11, 62)],
)
def test_hyperband_continues_the_best_trials(
    simulated, tmp_path, epochs, factor, trials, trained_epochs
):
    search = completed_search(tmp_path, section("hyperband", max_epochs=epochs, factor=factor))
    rows = search.rows()
    assert len(rows) == search.oracle.max_trials == trials
    limits = [task.config["training"]["max_epochs"] for task in simulated["tasks"]]
    trained = sum(limits)
    for row in rows:
        if row["continued_from"] is not None:
            trained -= limits[row["continued_from"]]
            assert row["values"] == rows[row["continued_from"]]["values"]
    assert max(limits) == epochs
    assert trained == trained_epochs


def test_best_trial_has_the_highest_score_of_a_metric(simulated, tmp_path):
    simulated["behaviour"] = lambda config: TrialResult(score=100 - loss(config))
    search = completed_search(tmp_path, section("hyperband", objective="bleu"))
    (best,) = search.oracle.get_best_trials(1)
    assert best.score == max(row["score"] for row in search.rows())


def test_search_ends_when_all_values_were_tried(simulated, tmp_path):
    simulated["behaviour"] = lambda config: TrialResult(score=1.0)
    rows = search_rows(tmp_path, section("random"), SearchSpace((SIZE,)))
    assert sorted(row["values"]["model.embedding"] for row in rows) == [1, 2, 3]


def test_failed_trials_are_in_the_table(simulated, tmp_path):
    def behave(config):
        if config["model"]["embedding"] == 2:
            return TrialResult(error="the loss is NaN")
        return TrialResult(score=loss(config))

    simulated["behaviour"] = behave
    rows = search_rows(tmp_path, section("random", max_failed_trials=9))
    failed = {(r["values"]["model.embedding"] == 2, r["state"], r["error"]) for r in rows}
    assert failed == {(True, "failed", "the loss is NaN"), (False, "completed", "")}


def test_too_many_failed_trials_stop_the_search_which_can_resume(simulated, tmp_path):
    complete = simulated["behaviour"]
    simulated["behaviour"] = after(1, TrialResult(error="no memory"))
    with pytest.raises(UserError) as caught:
        search_rows(tmp_path, section("random", max_failed_trials=2))
    assert "2 consecutive trials failed; the last one, trial 2: no memory" in caught.value.message
    assert "trial_2/log.txt" in caught.value.remedy
    simulated["behaviour"] = complete
    rows = search_rows(tmp_path, section("random", max_failed_trials=2))
    assert [row["state"] for row in rows] == ["completed", "failed", *["completed"] * 7]


@pytest.mark.parametrize("changes", [{"max_trials": 2}, {"max_failed_trials": 9}])
def test_search_without_a_completed_trial_fails(simulated, tmp_path, changes):
    simulated["behaviour"] = lambda config: TrialResult(error="broken")
    with pytest.raises(UserError):
        search_rows(tmp_path, section("random", **changes), SearchSpace((SIZE,)))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return tiny.make_source(tmp_path_factory.mktemp("rows"))


@pytest.fixture(scope="module")
def hyperband(source, tmp_path_factory):
    """A search with real trials and its events: three of one epoch, one of which continues."""
    folder = tmp_path_factory.mktemp("hyperband")
    path = folder / "events.jsonl"
    tune = tiny.tune(algorithm="hyperband", max_epochs=3, max_trials=None)
    search = tiny.search(folder, source, tune)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(events.VARIABLE, str(path))
        search.search()
    return search, [event for event, _ in events.read(path)]


@pytest.mark.slow
def test_continued_trial_equals_an_uninterrupted_training(hyperband, source, tmp_path):
    search, _ = hyperband
    rows = search.rows()
    assert [row["state"] for row in rows] == ["completed"] * 6
    assert sorted(row["epochs"] for row in rows) == [1, 1, 1, 3, 3, 3]
    (continued,) = (row for row in rows if row["continued_from"] is not None)
    rate = continued["values"]["training.learning_rate"]
    task = task_in(tmp_path, source, **{"training.learning_rate": rate})
    straight = run_trial(task, lambda *_: None)
    assert straight.error == ""
    assert straight.metrics == continued["metrics"]
    assert (straight.step, straight.epochs) == (continued["step"], continued["epochs"])
    log = Path(search.get_trial_dir(str(continued["trial"]))) / "events.jsonl"
    progress = [event for event, _ in events.read(log) if event["kind"] == "progress"]
    texts = [event["text"] for event in progress if "fraction" not in event]
    evaluations = [text for text in texts if not text.endswith("evaluating")]
    assert [text.partition(" · ")[0] for text in evaluations] == ["epoch 2", "epoch 3"]


@pytest.mark.slow
def test_search_reports_progress_and_results(hyperband):
    search, emitted = hyperband
    notes = [event["text"] for event in emitted if event["kind"] == "note"]
    assert len(notes) == 6
    assert notes[0].startswith("trial 0: training.learning_rate 0.0")
    assert any(", continuing trial " in text for text in notes)
    fractions = [event["fraction"] for event in emitted if event["kind"] == "progress"]
    assert fractions == sorted(fractions)
    assert {event["node"] for event in emitted} == {"Tuner"}
    folder = Path(search.project_dir)
    assert list(folder.glob("trial_*/checkpoints")) == []
    assert len(list(folder.glob("trial_*/log.txt"))) == 6


@pytest.mark.slow
def test_killed_search_gives_the_same_result_after_a_restart(source, tmp_path):
    whole = tiny.search(tmp_path / "whole", source, tiny.tune())
    whole.search()
    killed = tmp_path / "killed"
    killed.mkdir()
    command = [sys.executable, "-m", "tests.components.tuner.tiny", str(killed)]
    command += [json.dumps(dataclasses.asdict(source))]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    second = killed / "search/trial_1/checkpoints/last.npz"
    deadline = time.monotonic() + TIMEOUT
    while not second.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.wait()
    _, alive = psutil.wait_procs(family, timeout=10)
    # A trial ends with its search; in a container nobody may collect its exit status.
    assert [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE] == []
    assert second.exists()
    again = tiny.search(killed, source, tiny.tune())
    assert [row["state"] for row in again.rows()][:2] == ["completed", "running"]
    again.search()
    names = ("trial", "values", "score", "metrics", "state")
    results = [[{name: row[name] for name in names} for row in s.rows()] for s in (again, whole)]
    assert results[0] == results[1]


@pytest.mark.slow
def test_real_trial_that_fails(source, tmp_path):
    task = task_in(tmp_path, source, **{"model.encoder.heads": 3})  # does not divide the width
    result = run_trial(task, lambda *_: None)
    assert result.score is None
    assert "3" in result.error


def test_killed_trial_reports_the_signal_and_not_an_older_failure(source, tmp_path):
    write_state(tmp_path / "result.json", {"error": "old"})

    def kill(text, fraction):
        for child in psutil.Process(os.getpid()).children(recursive=True):
            if str(tmp_path / "log.txt") in open_files(child):
                child.kill()  # called again with each progress event until the process has ended

    task = task_in(tmp_path, source, **{"training.max_epochs": 2000})  # outlasts a poll
    result = run_trial(task, kill)
    assert "killed by signal 9" in result.error


def open_files(process):
    files = []
    for link in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            files.append(os.readlink(link))
    return files


def task_in(folder, source, **values):
    """A trial with real training; ``values`` are by their dotted keys."""
    checkpoints = checkpoint_folder(folder)
    return TrialTask(
        folder=str(folder),
        config=replace_values(tiny.config(), values),
        run=RunInputs(checkpoints=str(checkpoints.parent), checkpoint_key=checkpoints.name),
        source=source,
        objective="loss",
    )
