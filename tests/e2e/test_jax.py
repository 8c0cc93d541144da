"""A pipeline that trains on JAX: its model is served, and later trainings start from it."""

import json

import pytest

TRAINING = """training:
  backend: {backend}
  gradient_accumulation_steps: 2
  warm_start: {{}}
"""


def configure(shell, backend, epochs, learning_rate=0.01):
    """Write a configuration with accumulated batches, and return its name."""
    name = shell.configure(epochs=epochs)
    path = shell.folder / name
    text = path.read_text().replace("training:\n", TRAINING.format(backend=backend))
    path.write_text(text.replace("learning_rate: 0.01", f"learning_rate: {learning_rate}"))
    return name


def trainings(shell):
    """The records of the trainings, the oldest first."""
    folders = shell.home.glob("pipelines/tiny/artifacts/Trainer/model_run/*")
    folders = sorted(folders, key=lambda folder: int(folder.name))
    return [json.loads((folder / "training.json").read_text()) for folder in folders]


@pytest.fixture(scope="module")
def trained(shell):
    """A workspace with a model that was trained on JAX and published."""
    shell.environment["JAX_PLATFORMS"] = "cpu"
    shell.environment["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    result = shell.run("run", configure(shell, "jax", 12))
    assert result.returncode == 0, result.stdout + result.stderr
    return shell


def test_a_model_of_jax_is_published_and_answers(trained):
    (record,) = trainings(trained)
    assert (record["backend"], record["stop_reason"]) == ("jax", "max_epochs: 12")
    assert record["history"][-1]["loss"] < 0.5 * record["history"][0]["loss"]
    answer = trained.run("predict", "tiny", "abcd")
    assert answer.returncode == 0, answer.stderr
    assert "ABCD" in answer.stdout


@pytest.mark.slow
def test_each_backend_starts_from_a_model_of_the_other_one(trained):
    (record,) = trainings(trained)
    loss = min(entry["loss"] for entry in record["history"])  # of the weights that are exported
    for backend in ("tensorflow", "jax"):
        # Steps that change nothing: the first evaluation has the loss of the start.
        result = trained.run("run", configure(trained, backend, 1, learning_rate=1e-9))
        assert result.returncode == 0, result.stdout + result.stderr
        record = trainings(trained)[-1]
        assert record["backend"] == backend
        assert record["warm_start"]
        assert record["history"][0]["loss"] == pytest.approx(loss, rel=1e-4)
