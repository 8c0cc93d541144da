"""The starter configuration of each task is valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.components.common.errors import UserError
from regard.models.tasks import TASKS
from regard.pipeline.config import load
from regard.pipeline.config.starters import write_starter


@pytest.mark.parametrize("task", TASKS)
def test_starter_is_a_valid_configuration(task: str, tmp_path: Path) -> None:
    path = tmp_path / "my-model.yaml"
    write_starter(task, path)
    config = load(path, home=tmp_path)
    assert (config.task, config.name) == (task, "my-model")
    content = path.read_text()
    assert "NAME" not in content
    assert content.count("#") > 10
    assert "regard predict my-model" in content


def test_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\n")
    with pytest.raises(UserError, match="already exists"):
        write_starter("translation", path)
    assert path.read_text() == "name: mine\n"


@pytest.mark.parametrize(
    ("task", "file", "message"),
    [
        ("captoning", "x.yaml", "no task 'captoning'. Did you mean captioning"),
        ("translation", "My Model.yaml", "'My Model' is not a valid name"),
    ],
)
def test_invalid_task_or_name(task: str, file: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        write_starter(task, tmp_path / file)
    assert message in str(error.value)
    assert not list(tmp_path.iterdir())
