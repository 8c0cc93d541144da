"""Whole searches with real trials: side by side, promoted, killed, failing."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from components import events
from components.errors import UserError
from components.tuner.journal import DONE
from components.tuner.pool import Pool
from components.tuner.space import Dimension, Space
from components.tuner.trial import Task, checkpoints
from tests.components.tuner import tiny

ROOT = Path(__file__).parents[3]
PATIENCE = 240.0  # seconds


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return tiny.make_source(tmp_path_factory.mktemp("rows"))


@pytest.fixture(scope="module")
def hyperband(source, tmp_path_factory):
    """A whole search, two trials at a time: three of one epoch, of which one has three, two more.

    Gives the search and its events.
    """
    folder = tmp_path_factory.mktemp("hyperband")
    told = folder / "events.jsonl"
    found = tiny.search(folder, source, tiny.settings(algorithm="hyperband", epochs=3, parallel=2))
    before = os.environ.get(events.VARIABLE)
    os.environ[events.VARIABLE] = str(told)
    try:
        found.search()
    finally:
        os.environ.pop(events.VARIABLE)
        if before is not None:
            os.environ[events.VARIABLE] = before
    return found, [event for event, _ in events.read(told)]


def test_each_trial_has_its_values_and_its_epochs(hyperband):
    search, _ = hyperband
    rows = search.trials.rows()
    assert [row["state"] for row in rows] == ["done"] * 6
    assert len({row["values"]["training.learning_rate"] for row in rows}) == 5  # one went on
    assert sorted(row["epochs"] for row in rows) == [1, 1, 1, 3, 3, 3]
    best = search.get_best_hyperparameters()[0]
    scores = {row["score"]: row["values"]["training.learning_rate"] for row in rows}
    assert best["training.learning_rate"] == scores[min(scores)]


def test_the_promoted_trial_ends_as_if_it_had_never_stopped(hyperband, source, tmp_path):
    search, _ = hyperband
    (promoted,) = (row for row in search.trials.rows() if row["continues"])
    config = tiny.config()
    rate = promoted["values"]["training.learning_rate"]
    config["training"] |= {"learning_rate": rate, "max_epochs": 3}
    config["checkpoints"] = str(checkpoints(tmp_path))
    pool = Pool()
    pool.start(0, Task(str(tmp_path), config, source, "loss", threads=1))
    while not (ended := list(pool.ended(1.0))):
        pass
    ((_, straight),) = ended
    assert straight.state == DONE, straight.error
    assert straight.measures == promoted["measures"]
    assert (straight.step, straight.epochs) == (promoted["step"], promoted["epochs"])
    # And it really went on: its own process trained two epochs only.
    log = search.folder / f"trial-{promoted['trial']}" / "events.jsonl"
    epochs = [e["epoch"] for e, _ in events.read(log) if "learning_rate" in e]
    assert epochs == [2, 3]


def test_what_a_search_tells(hyperband):
    _, told = hyperband
    ends = [event["text"] for event in told if event["kind"] == "note"]
    assert len(ends) == 6
    assert ends[0].startswith("trial ")
    assert "training.learning_rate 0.0" in ends[0]
    assert ends[0].endswith(", the best so far")
    assert any(", from " in text for text in ends)
    fractions = [event["fraction"] for event in told if event["kind"] == "progress"]
    assert fractions == sorted(fractions)
    assert {event["node"] for event in told} == {"Tuner"}


def test_no_checkpoints_are_left(hyperband):
    search, _ = hyperband
    assert list(search.folder.glob("trial-*/checkpoints")) == []
    assert len(list(search.folder.glob("trial-*/log.txt"))) == 6


def test_done_again_nothing_runs(hyperband, source):
    search, _ = hyperband
    folder = search.folder.parent
    again = tiny.search(folder, source, search.tune)
    stamps = [path.stat().st_mtime_ns for path in search.folder.glob("trial-*/result.json")]
    again.search()
    assert again.trials.rows() == search.trials.rows()
    after = [path.stat().st_mtime_ns for path in search.folder.glob("trial-*/result.json")]
    assert after == stamps


@pytest.mark.slow
def test_killed_in_the_middle_it_finds_the_same(source, tmp_path):
    whole = tiny.search(tmp_path / "whole", source, tiny.settings(parallel=2))
    whole.search()
    cut = tmp_path / "cut"
    cut.mkdir()
    command = [sys.executable, "-m", "tests.components.tuner.tiny", str(cut)]
    command += [json.dumps(dataclasses.asdict(source)), "{}"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    second = cut / "search/trial-2/checkpoints/last.npz"
    deadline = time.monotonic() + PATIENCE
    while not second.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.wait()
    _, left = psutil.wait_procs(family, timeout=10)
    # No trial goes on without its search; nobody may be there to bury those that have ended.
    assert [one for one in left if one.is_running() and one.status() != psutil.STATUS_ZOMBIE] == []
    assert second.exists()
    again = tiny.search(cut, source, tiny.settings())
    assert [row["state"] for row in again.trials.rows()][:2] == ["done", "running"]
    again.search()

    def facts(search):
        return [
            {name: row[name] for name in ("trial", "values", "score", "measures", "state")}
            for row in search.trials.rows()
        ]

    assert facts(again) == facts(whole)


def test_a_trial_that_fails_does_not_end_the_search(source, tmp_path):
    # Heads that do not divide the width, which no configuration would let through.
    space = Space((Dimension("model.encoder.heads", choices=[3, 2]),))
    search = tiny.search(tmp_path, source, tiny.settings(trials=2, parallel=2), space)
    search.search()
    rows = {row["values"]["model.encoder.heads"]: row for row in search.trials.rows()}
    assert (rows[2]["state"], rows[3]["state"]) == ("done", "failed")
    assert "3" in rows[3]["error"]
    assert search.get_best_hyperparameters()[0]["model.encoder.heads"] == 2


def test_a_killed_trial_does_not_tell_how_it_failed_before(source, tmp_path):
    (tmp_path / "result.json").write_text('{"state": "failed", "error": "long ago"}')
    pool = Pool()
    pool.start(0, Task(str(tmp_path), tiny.config(), source, "loss"))
    process, _ = pool._running[0]
    process.kill()
    while not (ended := list(pool.ended(1.0))):
        pass
    assert "signal 9" in ended[0][1].error


def test_checkpoints_of_searches_given_up_do_not_pile_up(source, tmp_path):
    stamp = time.time()
    for age, name in enumerate(("newest", "second", "old")):
        (tmp_path / name / "trial-1/checkpoints").mkdir(parents=True)
        journal = tmp_path / name / "journal.json"
        journal.write_text("[]")
        os.utime(journal, (stamp - age, stamp - age))
    (tmp_path / "other/trial-1/checkpoints").mkdir(parents=True)  # no search
    tiny.search(tmp_path, source, tiny.settings(trials=1)).search()
    left = {path.parts[-3] for path in tmp_path.glob("*/trial-1/checkpoints")}
    assert left == {"newest", "second", "other"}
    assert (tmp_path / "old/journal.json").exists()


def test_too_many_failures_end_it(source, tmp_path):
    space = Space((Dimension("model.encoder.heads", choices=[3, 5, 7]),))
    search = tiny.search(tmp_path, source, tiny.settings(failures=2), space)
    with pytest.raises(UserError) as caught:
        search.search()
    assert caught.value.message.startswith("2 trials failed one after the other; the last one, ")
    assert caught.value.where == "tune.over"
    assert "trial-2/log.txt" in caught.value.remedy
    assert len(search.trials) == 2
