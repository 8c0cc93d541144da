"""``regard data generate`` with sizes, for data sets that have them and for those that do not."""

import json

import pytest
from typer.testing import CliRunner

from components.errors import UserError
from pipeline.commands.data import app


def test_sizes_are_handed_on(tmp_path):
    sizes = ["--sizes", "3-4", "--test-sizes", "3,6"]
    call = ["generate", "hull", "--rows", "80", "--out", str(tmp_path), *sizes, "--json"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rows"] == {"train": 72, "eval": 4, "test": 4}
    record = json.loads((tmp_path / "hull.json").read_text())
    assert record["trained_sizes"] == [3, 4]
    assert set(record["sizes"]["test"]) == {"3", "6"}


@pytest.mark.parametrize("option", ["--sizes", "--test-sizes"])
def test_a_data_set_without_sizes_says_so(tmp_path, option):
    call = ["generate", "quickstart", "--out", str(tmp_path), option, "5"]
    done = CliRunner().invoke(app, call)
    assert isinstance(done.exception, UserError)
    assert (done.exception.where, done.exception.message) == (option, "quickstart has no sizes")
    assert f"Leave out {option}" in done.exception.remedy
    assert list(tmp_path.iterdir()) == []
