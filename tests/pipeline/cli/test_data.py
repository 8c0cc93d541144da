"""``regard data``."""

import json

from typer.testing import CliRunner

from regard.pipeline.cli.data import app


def test_generate(tmp_path):
    arguments = ["generate", "hull", "--rows", "80", "--out", str(tmp_path)]
    lines = CliRunner().invoke(app, arguments).stdout.splitlines()
    assert lines == ["hull: 72 train, 4 eval, 3 test", str(tmp_path)]
    assert json.loads((tmp_path / "hull.json").read_text())["seed"] == 17


def test_list():
    result = CliRunner().invoke(app, ["list", "--json"])
    entries = {entry["name"]: entry["command"] for entry in json.loads(result.stdout)}
    assert entries["multi30k"] == "fetch"
    assert entries["quickstart"] == "generate"


def test_a_file_with_the_name_of_the_folder(tmp_path):
    (tmp_path / "file").touch()
    result = CliRunner().invoke(app, ["generate", "hull", "--out", str(tmp_path / "file")])
    assert "A file has the name of the folder" in result.exception.message
