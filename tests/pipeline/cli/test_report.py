import webbrowser

import pytest
from typer.testing import CliRunner

from regard.components.common import run_record
from regard.components.common.run_record import RunRecord
from regard.core.errors import UserError
from regard.pipeline.cli.app import app
from regard.pipeline.runs import store
from regard.pipeline.workspace import Workspace


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    run = store.create(Workspace(tmp_path).pipeline("mine"))
    run.update(RunRecord(status=run_record.FAILED, failure={"error": "No such file"}))
    return tmp_path


def invoke(*arguments):
    return CliRunner().invoke(app, ["report", *arguments], catch_exceptions=False)


def test_default_output(home):
    result = invoke("mine")
    (path,) = (home / "pipelines" / "mine" / "runs").glob("*/report.html")
    assert result.stdout == f"{path}\n"
    assert "No such file" in path.read_text(encoding="utf-8")


def test_output_option(home):
    path = home / "a" / "r.html"
    assert invoke("mine", "-o", str(path)).stdout == f"{path}\n"
    assert path.is_file()


def _set_browser(monkeypatch, command):
    """Set the variable, which is read at the first use of the module."""
    monkeypatch.setenv("BROWSER", command)
    monkeypatch.setattr(webbrowser, "_tryorder", None)
    monkeypatch.setattr(webbrowser, "_browsers", {})


@pytest.mark.parametrize("command", ["false", "no-such-browser", "true '%s", "%s"])
def test_a_browser_that_cannot_be_opened(home, monkeypatch, command):
    _set_browser(monkeypatch, command)
    result = invoke("mine", "--open")
    assert (result.exit_code, result.stdout.endswith("report.html\n")) == (0, True)
    assert "could not be opened" in result.stderr


def test_open(home, monkeypatch):
    (home / "browser").write_text(f'#!/bin/sh\necho "$1" > {home}/opened\n')
    (home / "browser").chmod(0o755)
    _set_browser(monkeypatch, f"{home}/browser")
    result = invoke("mine", "--open")
    assert (home / "opened").read_text().strip() == f"file://{result.stdout.strip()}"
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nine", "Unknown run 'nine'"),
        ("mine -o {home}", "path is a folder"),
        ("mine -o {home}/file/x.html", "not writable"),
    ],
)
def test_an_unknown_run_and_unwritable_paths_are_errors(home, arguments, message):
    (home / "file").touch()
    with pytest.raises(UserError, match=message):
        invoke(*arguments.format(home=home).split())
