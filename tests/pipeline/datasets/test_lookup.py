"""Lookup of data sets by name, and what all generators have in common."""

import subprocess
import sys

import pytest

from regard.core.errors import UserError
from regard.pipeline import datasets


def test_unknown_names():
    with pytest.raises(UserError, match="Did you mean quickstart"):
        datasets.writer("generate", "quikstart")
    with pytest.raises(UserError, match="regard data fetch multi30k"):
        datasets.writer("generate", "multi30k")
    with pytest.raises(UserError, match="Choices: multi30k"):
        datasets.writer("fetch", "wmt")


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    "name", [name for name, (command, _) in datasets.DATASETS.items() if command == "generate"]
)
def test_seed_determines_every_byte(name, tmp_path):
    for folder, seed in (("a", 3), ("b", 3), ("c", 4)):
        datasets.writer("generate", name)(tmp_path / folder, rows=120, seed=seed)
    a, b, c = (contents(tmp_path / folder) for folder in "abc")
    assert a == b
    same = {file for file in a if "/" not in file and a[file] == c[file]}
    assert not same


def test_listing_imports_no_libraries():
    code = (
        "import sys, regard.pipeline.datasets, regard.pipeline.datasets.fetch;"
        "import regard.pipeline.datasets.quickstart;"
        "names = ('babel', 'num2words', 'pooch', 'requests', 'tensorflow');"
        "print([name for name in names if name in sys.modules])"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "[]"
