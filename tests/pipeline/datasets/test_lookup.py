"""Lookup of data sets by name."""

import subprocess
import sys

import pytest

from regard.components.common.errors import UserError
from regard.pipeline import datasets


def test_lookup_by_name():
    from regard.pipeline.datasets.fetch import fetch_multi30k
    from regard.pipeline.datasets.quickstart import generate

    assert datasets.generator("quickstart") is generate
    assert datasets.fetcher("multi30k") is fetch_multi30k


def test_unknown_names():
    with pytest.raises(UserError, match="Did you mean quickstart"):
        datasets.generator("quikstart")
    with pytest.raises(UserError, match="regard data fetch multi30k"):
        datasets.generator("multi30k")
    with pytest.raises(UserError, match="Choose one of: multi30k"):
        datasets.fetcher("wmt")


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
