"""Output of ``regard validate``, and values given with ``--set``."""

import json

import pytest
from typer.testing import CliRunner

from regard.core.errors import UserError
from regard.pipeline.cli.app import app

CONFIG = """\
name: tiny
data: {train: a.tsv, eval: a.tsv, test: a.tsv}
tokenizer: {type: char, vocab_size: 20, vocab_limit: soft}
"""


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(CONFIG)
    (tmp_path / "a.tsv").write_text("a\tA\nb\tB\n")
    (tmp_path / "b.tsv").write_text("a\tA\nb\tB\nc\tC\n")

    def run(*arguments):
        command = ["validate", "tiny.yaml", *arguments]
        return CliRunner().invoke(app, command, catch_exceptions=False)

    return run


def test_text(invoke):
    lines = invoke().stdout.splitlines()
    assert lines[0] == ("tiny.yaml is valid: pipeline tiny, 2 train, 2 eval, 2 test from 3 files.")
    assert lines[1].startswith("  first row, a.tsv:1: source (column 1) 'a'")


def test_given_values(invoke, tmp_path):
    result = json.loads(invoke("--set", "data.train=b.tsv", "--json").stdout)
    assert result["rows"] == {"train": 3, "eval": 2, "test": 2}
    assert result["files"]["train"] == [str(tmp_path / "b.tsv")]
    with pytest.raises(UserError, match=r"^--set data\.tran: unknown key"):
        invoke("--set", "data.tran=b.tsv")
