"""The rules of the house that a machine can check."""

import ast
from pathlib import Path

import pytest

from pipeline.nodes import NODES

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("pipeline", "components", "models", "serving")
BELOW = {
    "pipeline": {"pipeline", "components", "models", "serving"},
    "components": {"components", "models", "serving"},
    "models": {"models"},
    "serving": {"serving"},
}


def sources(package):
    return sorted((ROOT / package).rglob("*.py"))


def imported(path):
    """The top-level packages that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def test_imported_sees_lazy_imports(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("import keras.ops\ndef f():\n    from tensorflow.io import gfile\n")
    assert imported(path) == {"keras", "tensorflow"}


@pytest.mark.parametrize("package", PACKAGES)
def test_an_import_only_goes_down(package):
    wrong = {
        str(path.relative_to(ROOT)): sorted(upward)
        for path in sources(package)
        if (upward := (imported(path) & set(PACKAGES)) - BELOW[package])
    }
    assert wrong == {}


def test_models_know_no_backend_outside_tasks():
    tasks = ROOT / "models" / "tasks"
    wrong = {
        str(path.relative_to(ROOT)): sorted(backends)
        for path in sources("models")
        if tasks not in path.parents
        and (backends := imported(path) & {"tensorflow", "tensorflow_text", "jax", "torch"})
    }
    assert wrong == {}


def test_no_file_is_longer_than_400_lines():
    files = [path for package in (*PACKAGES, "tests") for path in sources(package)]
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_bytes().splitlines()) for path in files
    }
    assert {name: length for name, length in lengths.items() if length > 400} == {}


def test_the_graph_picture_names_every_node():
    picture = (ROOT / "docs" / "pipeline.svg").read_text(encoding="utf-8")
    assert [name for name in NODES if f">{name}<" not in picture] == []
