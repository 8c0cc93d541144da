"""The public names of the components."""

import importlib
import subprocess
import sys

import pytest

from regard import components


def test_the_import_is_light():
    code = (
        "import sys, regard.components as c; dir(c); print({*sys.modules} & {'tensorflow', 'tfx'})"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"


@pytest.mark.parametrize("name", components.__all__)
def test_a_name_is_that_of_its_module(name):
    module = importlib.import_module(components._OWNERS[name])
    assert getattr(components, name) is getattr(module, name)
    assert name in dir(components)


def test_an_unknown_name_is_an_error():
    with pytest.raises(AttributeError, match="no attribute 'tfdataset'"):
        _ = components.tfdataset


def test_the_table_is_sorted():
    assert list(components._MODULES) == sorted(components._MODULES)
