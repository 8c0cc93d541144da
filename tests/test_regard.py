"""The package ``regard``: its names, its version, and ``python -m regard``."""

import subprocess
import sys

import pytest

import regard
from regard.core.provenance import package_version


def run_python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


def test_import_loads_nothing_else():
    heavy = "{'pydantic', 'tensorflow', 'keras', 'rich'}"
    code = f"import sys, regard, regard.pipeline; dir(regard); print(*(set(sys.modules) & {heavy}))"
    result = run_python("-c", code)
    assert (result.stdout, result.stderr) == ("\n", "")


def test_only_models_import_tensorflow():
    code = "import sys; from regard import run, tune; print('tensorflow' in sys.modules)"
    assert run_python("-c", code).stdout == "False\n"


def test_names():
    assert all(getattr(regard, name).__doc__ for name in regard.__all__)
    assert {*regard.__all__, "__version__", "models"} <= set(dir(regard))
    assert regard.__version__ == package_version()
    with pytest.raises(AttributeError, match="'regard' has no attribute 'train'"):
        _ = regard.train


def test_python_m_regard():
    result = run_python("-m", "regard", "--version")
    assert (result.stdout, result.returncode) == (f"regard {regard.__version__}\n", 0)
    assert "regard run" in run_python("-m", "regard", "run", "--help").stdout
