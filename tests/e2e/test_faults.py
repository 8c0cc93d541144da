"""Kills, interruptions and bad input, from the outside."""

import os
import signal
import time

import pytest


def steps(shell):
    """Times and training steps of the newest run's events."""
    runs = shell.home / "pipelines/tiny/runs"
    events = shell.events() if runs.exists() and list(runs.iterdir()) else []
    return [(e["time"], e["step"]) for e in events if "step" in e]


def wait_for_step(shell, process, step):
    deadline = time.monotonic() + 200
    while not (progress := steps(shell)) or progress[-1][1] < step:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "the training did not reach the step"
        time.sleep(0.2)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_stopped_training_resumes(shell, how):
    last = shell.home / "pipelines/tiny/checkpoints"
    config = shell.configure(epochs=400 if how == signal.SIGKILL else 401)
    process = shell.start("run", config, start_new_session=True)
    wait_for_step(shell, process, 300)
    deadline = time.monotonic() + 30
    while not list(last.glob("*/last.npz")):
        assert time.monotonic() < deadline, "no checkpoint"
        time.sleep(0.1)
    if how == signal.SIGKILL:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    else:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert f"regard run {config}" in out + err
    (folder,) = last.iterdir()
    progress = steps(shell)
    # Checkpoints are written every second, so they include steps four seconds before the end.
    safe = max((step for when, step in progress if when < progress[-1][0] - 4), default=1)

    # The remaining epochs would take long, so only the step at which it resumes is checked.
    again = shell.start("run", config, start_new_session=True)
    deadline = time.monotonic() + 120
    resumed = ""
    while not resumed:
        assert again.poll() is None, again.communicate()
        assert time.monotonic() < deadline, "the training did not resume"
        texts = [event.get("text", "") for event in shell.events()]
        resumed = next((text for text in texts if "resumed at step" in text), "")
        time.sleep(0.2)
    os.killpg(again.pid, signal.SIGKILL)
    again.communicate(timeout=60)
    assert int(resumed.split("step ")[1].split(",")[0]) >= safe
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


@pytest.mark.slow  # tests/pipeline/cli/test_app.py has the same with an invented worker
def test_bad_input_is_reported_in_one_sentence(shell):
    config = shell.configure(epochs=1)
    (shell.folder / "data" / "train.tsv").write_bytes(b"abc\tABC\nab\xff\tAB\n")
    result = shell.run("run", config)
    assert result.returncode == 2
    output = result.stdout + result.stderr
    assert "train.tsv:2" in output
    assert "data.bad_rows" in output
    assert "Traceback" not in output
