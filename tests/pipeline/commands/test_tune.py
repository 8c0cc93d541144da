"""What `regard tune` refuses before anything runs."""

import pytest
from typer.testing import CliRunner

from components.errors import UserError
from pipeline.cli import app

CONFIG = "name: a\ndata: {train: a.tsv}\n"
TUNE = "tune: {over: {model.dropout: {linear: [0.1, 0.2]}}}\n"


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """Runs the command over a file, and gives the error that ends it."""
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))

    def call(text, *options):
        (tmp_path / "a.yaml").write_text(text)
        done = CliRunner().invoke(app, ["tune", str(tmp_path / "a.yaml"), *map(str, options)])
        assert isinstance(done.exception, UserError), done.output
        assert not (tmp_path / "home").exists()
        return done.exception

    return call


def test_without_a_section(refused, tmp_path):
    error = refused(CONFIG)
    assert error.message == "there is no section tune, which says what to search"
    assert error.where == str(tmp_path / "a.yaml")
    assert "tune: {over: " in error.remedy


def test_a_section_that_cannot_be(refused):
    error = refused(CONFIG + TUNE.replace("0.2", "2"))
    assert "tune.over.model.dropout: 2.0 is not possible: must be less than 1" in error.message


def test_a_file_that_is_there(refused, tmp_path):
    (tmp_path / "a.tuned.yaml").touch()
    assert refused(CONFIG + TUNE).where == str(tmp_path / "a.tuned.yaml")
    (tmp_path / "b.yaml").touch()
    assert refused(CONFIG + TUNE, "-o", tmp_path / "b.yaml").where == str(tmp_path / "b.yaml")


def test_a_folder_in_the_place_of_the_file(refused, tmp_path):
    (tmp_path / "out").mkdir()
    error = refused(CONFIG + TUNE, "-o", tmp_path / "out", "--force")
    assert error.message == "this is a folder, not a file"


def test_a_folder_where_paths_mean_something_else(refused, tmp_path):
    (tmp_path / "other").mkdir()
    error = refused(CONFIG + TUNE, "-o", tmp_path / "other/b.yaml")
    assert "would mean something else" in error.message


def test_data_that_are_not_there(refused, tmp_path):
    error = refused(CONFIG + TUNE)
    assert "a.tsv" in f"{error}"
    assert not (tmp_path / "a.tuned.yaml").exists()
