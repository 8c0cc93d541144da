import subprocess
import sys

import pytest

from components.errors import UserError
from pipeline import datasets


def test_lookup_by_name():
    from pipeline.datasets.fetch import fetch_multi30k
    from pipeline.datasets.quickstart import generate

    assert datasets.generator("quickstart") is generate
    assert datasets.fetcher("multi30k") is fetch_multi30k


def test_unknown_names_have_a_remedy():
    with pytest.raises(UserError, match="Did you mean 'quickstart'"):
        datasets.generator("quikstart")
    with pytest.raises(UserError, match="regard data fetch multi30k"):
        datasets.generator("multi30k")
    with pytest.raises(UserError, match="Choose one of: multi30k"):
        datasets.fetcher("wmt")


def test_listing_imports_nothing_heavy():
    code = (
        "import sys, pipeline.datasets, pipeline.datasets.fetch, pipeline.datasets.quickstart;"
        "print([m for m in ('babel', 'num2words', 'requests', 'tensorflow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
