"""Errors of `regard tune` before anything runs."""

import pytest
from typer.testing import CliRunner

from regard.core.errors import UserError
from regard.pipeline.cli.app import app

CONFIG = "name: a\ndata: {train: a.tsv}\n"
TUNE = "tune: {search_space: {model.dropout: {linear: [0.1, 0.2]}}}\n"


@pytest.fixture
def run_error(tmp_path, monkeypatch):
    """Runs the command on a configuration and returns its error."""
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))

    def call(text, *options):
        (tmp_path / "a.yaml").write_text(text)
        result = CliRunner().invoke(app, ["tune", str(tmp_path / "a.yaml"), *map(str, options)])
        assert isinstance(result.exception, UserError), result.output
        assert not (tmp_path / "home").exists()
        return result.exception

    return call


def test_missing_section(run_error, tmp_path):
    error = run_error(CONFIG)
    assert error.message == "The configuration has no section tune."
    assert error.where == f"{tmp_path / 'a.yaml'}: tune"
    assert "tune: {search_space: " in error.remedy


def test_existing_file(run_error, tmp_path):
    (tmp_path / "a.tuned.yaml").touch()
    assert run_error(CONFIG + TUNE).where == str(tmp_path / "a.tuned.yaml")
    (tmp_path / "b.yaml").touch()
    assert run_error(CONFIG + TUNE, "-o", tmp_path / "b.yaml").where == str(tmp_path / "b.yaml")


def test_relative_paths_in_another_folder(run_error, tmp_path):
    (tmp_path / "other").mkdir()
    error = run_error(CONFIG + TUNE, "-o", tmp_path / "other/b.yaml")
    assert "would be wrong in" in error.message


def test_missing_data(run_error, tmp_path):
    assert "a.tsv" in str(run_error(CONFIG + TUNE))
    assert not (tmp_path / "a.tuned.yaml").exists()


def test_given_values(run_error, tmp_path):
    (tmp_path / "a.tsv").write_text("a\tA\nb\tB\n")
    error = run_error(CONFIG + TUNE, "--set", "tune.search_space={model.dropout: {linear: [0, 2]}}")
    assert error.message.startswith("--set tune.search_space")
    assert "b.tsv" in str(run_error(CONFIG + TUNE, "--set", "data.train=b.tsv"))
