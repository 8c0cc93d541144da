"""Event files, read by TensorBoard."""

import math

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from regard.components.trainer.summaries import SummaryWriter


def read(folder):
    """The scalars of a folder by their tags: pairs of step and value."""
    events = EventAccumulator(str(folder))
    events.Reload()
    return {
        tag: [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def test_tensorboard_reads_tags_steps_and_values(tmp_path):
    writer = SummaryWriter(tmp_path / "run")
    writer.write("train", {"loss": 0.5, "learning_rate": 0.25}, 10)
    writer.write("eval", {"loss": 2}, 10)
    writer.flush()
    assert read(tmp_path / "run") == {  # while it is open
        "train/loss": [(10, 0.5)],
        "train/learning_rate": [(10, 0.25)],
        "eval/loss": [(10, 2.0)],
    }
    writer.write("train", {"loss": math.inf}, 2**40)
    writer.close()
    assert read(tmp_path / "run")["train/loss"] == [(10, 0.5), (2**40, math.inf)]


def test_a_resumed_training_adds_a_file(tmp_path):
    for step in (1, 2):
        writer = SummaryWriter(tmp_path)
        writer.write("train", {"loss": step}, step)
        writer.close()
    assert len(list(tmp_path.iterdir())) == 2
    assert [step for step, _ in read(tmp_path)["train/loss"]] == [1, 2]


@pytest.mark.parametrize("write", [False, True])
def test_without_a_folder_or_scalars_there_is_no_file(tmp_path, monkeypatch, write):
    monkeypatch.chdir(tmp_path)
    writer = SummaryWriter(None if write else tmp_path / "run")
    if write:
        writer.write("train", {"loss": 1.0}, 1)
    writer.flush()
    writer.close()
    assert list(tmp_path.iterdir()) == []
