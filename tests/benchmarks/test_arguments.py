"""Every argument that a script reads is one that its parser defines."""

import re
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_arguments_are_defined(script):
    text = script.read_text(encoding="utf-8")
    defined = re.findall(r'add_argument\(\s*"(?:--)?([\w-]+)"', text)
    used = set(re.findall(r"\barguments\.(\w+)", text))
    assert used <= {name.replace("-", "_") for name in defined}
