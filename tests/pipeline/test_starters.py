"""A starter of each task, that is a good configuration but for its data."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.errors import UserError
from models.tasks import TASKS
from pipeline import starters
from pipeline.config import load


@pytest.mark.parametrize("task", TASKS)
def test_a_starter_is_a_configuration(task: str, tmp_path: Path) -> None:
    path = starters.write(task, tmp_path / "my-model.yaml")
    config = load(path, home=tmp_path)
    assert (config.task, config.name) == (task, "my-model")
    content = path.read_text()
    assert "NAME" not in content
    assert content.count("#") > 10
    assert "regard predict my-model" in content


def test_a_file_that_is_there_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\n")
    with pytest.raises(UserError, match="such a file already"):
        starters.write("translation", path)
    assert path.read_text() == "name: mine\n"


def test_an_unknown_task(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no task 'captoning'; did you mean captioning"):
        starters.write("captoning", tmp_path / "x.yaml")


def test_a_file_name_that_can_be_no_pipeline(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="called My Model"):
        starters.write("translation", tmp_path / "My Model.yaml")
    assert not list(tmp_path.iterdir())
