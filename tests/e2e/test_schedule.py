"""A schedule of a real pipeline: a run where there is reason for it, and what is remembered."""

import json
import signal
import time

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def first(shell):
    """The first look, which finds everything new."""
    shell.configure(epochs=2)
    done = shell.run("schedule", "tiny.yaml", "--once", "--new-rows", "100", "--drift")
    return done.returncode, done.stdout + done.stderr


def state(shell) -> dict:
    folder = shell.home / "pipelines/tiny/schedule"
    return json.loads((folder / "state.json").read_text())


def test_the_first_look_trains_and_pushes(shell, first):
    status, said = first
    assert status == 0, said
    assert "pushed as tiny@1" in said
    (tried,) = state(shell)["history"]
    assert (tried["status"], tried["exit_status"]) == ("pushed", 0)
    assert (shell.home / "pipelines/tiny/runs" / tried["run"] / "run.json").is_file()


def test_the_profile_is_that_of_the_version(shell, first):
    kept = json.loads((shell.home / "pipelines/tiny/schedule/trained-profile.json").read_text())
    profile = shell.home / "registry/tiny/1/assets.extra/profile.json"
    assert {k: v for k, v in kept.items() if k != "key"} == json.loads(profile.read_text())


def test_a_look_at_the_same_runs_nothing(shell, first):
    done = shell.run("schedule", "tiny.yaml", "--once", "--every", "1h")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no run: nothing has changed since run" in done.stdout


def test_a_stopped_scheduler_stops_its_run_and_goes_on_with_it(shell, first):
    with open(shell.folder / "data/train.tsv", "a") as file:
        file.writelines(f"{word}\t{word.upper()}\n" for word in ("hah", "gag", "fed") * 50)
    process = shell.start("schedule", "tiny.yaml", "--every", "1s", "--new-rows", "100")
    try:
        runs = shell.home / "pipelines/tiny/runs"
        while len(list(runs.glob("*/events.jsonl"))) < 2:
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, out + err
    assert "run: new_rows: 150 new rows, and 100 are enough" in out
    assert state(shell)["history"][-1]["status"] == "interrupted"
    done = shell.run("schedule", "tiny.yaml", "--once", "--new-rows", "100")
    assert "was interrupted, and goes on" in done.stdout
    assert state(shell)["history"][-1]["status"] in ("pushed", "not blessed")
    assert done.returncode == {"pushed": 0, "not blessed": 3}[state(shell)["history"][-1]["status"]]
