"""Lookup of data sets by name."""

import subprocess
import sys

import pytest

from regard.components.common.errors import UserError
from regard.pipeline import datasets


def test_unknown_names():
    with pytest.raises(UserError, match="Did you mean quickstart"):
        datasets.writer("generate", "quikstart")
    with pytest.raises(UserError, match="regard data fetch multi30k"):
        datasets.writer("generate", "multi30k")
    with pytest.raises(UserError, match="Choose one of: multi30k"):
        datasets.writer("fetch", "wmt")


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
