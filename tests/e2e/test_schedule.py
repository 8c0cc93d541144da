"""A schedule of a real pipeline."""

import json
import signal
import time

import pytest

pytestmark = pytest.mark.slow


def configure(shell, schedule: str) -> None:
    """Write the configuration with a section ``schedule``."""
    with open(shell.folder / shell.configure(epochs=2), "a") as file:
        file.write(f"schedule: {schedule}\n")


@pytest.fixture(scope="module")
def first(shell):
    """The first check, at which everything is new."""
    configure(shell, "{new_rows: 100, drift: true}")
    result = shell.run("schedule", "tiny.yaml", "--once")
    return result.returncode, result.stdout + result.stderr


def state(shell) -> dict:
    folder = shell.home / "pipelines/tiny/schedule"
    return json.loads((folder / "state.json").read_text())


def test_the_first_check_trains_and_pushes(shell, first):
    status, output = first
    assert status == 0, output
    assert "pushed as tiny@1" in output
    (attempt,) = state(shell)["history"]
    assert (attempt["status"], attempt["exit_status"]) == ("pushed", 0)
    assert (shell.home / "pipelines/tiny/runs" / attempt["run"] / "run.json").is_file()


def test_unchanged_data_starts_no_run(shell, first):
    configure(shell, "{every: 1h}")
    result = shell.run("schedule", "tiny.yaml", "--once")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "no run: nothing has changed since run" in result.stdout


def test_a_stopped_scheduler_stops_its_run_and_resumes_it(shell, first):
    with open(shell.folder / "data/train.tsv", "a") as file:
        file.writelines(f"{word}\t{word.upper()}\n" for word in ("hah", "gag", "fed") * 50)
    configure(shell, "{every: 1s, new_rows: 100}")
    process = shell.start("schedule", "tiny.yaml")
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
    assert "run: new_rows: 150 new rows of 100 required" in out
    assert state(shell)["history"][-1]["status"] == "interrupted"
    result = shell.run("schedule", "tiny.yaml", "--once")
    assert "which was interrupted" in result.stdout
    assert state(shell)["history"][-1]["status"] in ("pushed", "not blessed")
    assert (
        result.returncode == {"pushed": 0, "not blessed": 3}[state(shell)["history"][-1]["status"]]
    )
