from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from regard.components.common.errors import UserError
from regard.pipeline import run_store
from regard.pipeline.cli.app import app
from regard.pipeline.workspace import Workspace


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    run = run_store.create(Workspace(tmp_path).pipeline("mine"))
    run.update(status=run_store.FAILED, failure={"error": "no such file"})
    return tmp_path


def invoke(*arguments):
    return CliRunner().invoke(app, ["report", *arguments], catch_exceptions=False)


def test_default_output(home):
    result = invoke("mine")
    path = result.stdout.strip()
    assert path.startswith(str(home / "pipelines" / "mine" / "runs"))
    assert path.endswith("/report.html")
    with open(path, encoding="utf-8") as file:
        assert "no such file" in file.read()


def test_output_and_figures_options(home):
    result = invoke(
        "mine", "-o", str(home / "a" / "r.html"), "--figures", str(home / "f"), "--json"
    )
    output = json.loads(result.stdout)
    assert output["report"] == str(home / "a" / "r.html")
    assert output["figures"] == []
    assert (home / "a" / "r.html").is_file()


def test_paths_that_cannot_be_written_are_refused(home):
    (home / "file").write_text("x")
    for arguments, message in [
        (["-o", str(home)], "path is a folder"),
        (["--figures", str(home / "file")], "not writable"),
        (["-o", str(home / "file" / "x.html")], "not writable"),
    ]:
        with pytest.raises(UserError, match=message):
            invoke("mine", *arguments)


def test_an_unknown_run_is_refused(home):
    with pytest.raises(UserError, match="Unknown run 'nine'"):
        invoke("nine")
