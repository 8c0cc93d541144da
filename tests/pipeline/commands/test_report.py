from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from components.errors import UserError
from pipeline import runs
from pipeline.cli import app
from pipeline.workspace import Workspace


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    run = runs.create(Workspace(tmp_path).pipeline("mine"))
    run.update(status=runs.FAILED, failure={"error": "no such file"})
    return tmp_path


def ask(*arguments):
    return CliRunner().invoke(app, ["report", *arguments], catch_exceptions=False)


def test_the_page_lies_in_the_runs_folder(home):
    told = ask("mine")
    path = told.stdout.strip()
    assert path.startswith(str(home / "pipelines" / "mine" / "runs"))
    assert path.endswith("/report.html")
    with open(path, encoding="utf-8") as file:
        assert "no such file" in file.read()


def test_the_page_and_its_figures_go_where_one_wants(home):
    told = ask("mine", "-o", str(home / "a" / "r.html"), "--figures", str(home / "f"), "--json")
    found = json.loads(told.stdout)
    assert found["report"] == str(home / "a" / "r.html")
    assert found["figures"] == []
    assert (home / "a" / "r.html").is_file()


def test_places_where_nothing_can_be_written_are_named(home):
    (home / "file").write_text("x")
    for arguments, told in [
        (["-o", str(home)], "it is a folder"),
        (["--figures", str(home / "file")], "it is no folder"),
        (["-o", str(home / "file" / "x.html")], "it cannot be written"),
    ]:
        with pytest.raises(UserError, match=told):
            ask("mine", *arguments)


def test_a_run_that_is_not_there(home):
    with pytest.raises(UserError, match="there is no run 'nine'"):
        ask("nine")
