"""Rules of the architecture that a test can check."""

import ast
import re
from pathlib import Path

import pytest

from regard.pipeline.config.config import NODES

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("pipeline", "components", "models", "serving", "core")
BELOW = {
    "pipeline": {"pipeline", "components", "models", "serving", "core"},
    "components": {"components", "models", "serving", "core"},
    "models": {"models", "core"},
    "serving": {"serving", "core"},
    "core": {"core"},
}


def sources(package):
    return sorted((ROOT / package).rglob("*.py"))


def imported(path):
    """The packages that a file imports anywhere: our own subpackages, others' top-level names."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
        names |= {name.removeprefix("regard.").partition(".")[0] for name in modules}
    return names


def test_the_subpackages_are_imported_from_regard():
    """A folder `models` or `serving` of a user must not shadow ours."""
    pattern = re.compile(rf"^\s*(from|import) ({'|'.join(PACKAGES)})\b", re.MULTILINE)
    folders = (*PACKAGES, "tests", "benchmarks")
    files = [path for folder in folders for path in sources(folder)]
    assert [str(path) for path in files if pattern.search(path.read_text("utf-8"))] == []


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


def test_core_knows_no_tensorflow():
    heavy = {"tensorflow", "keras", "tfx", "apache_beam", "jax", "torch", "pydantic"}
    wrong = {path.name: sorted(imported(path) & heavy) for path in sources("core")}
    assert {name: packages for name, packages in wrong.items() if packages} == {}


def test_no_file_is_longer_than_400_lines():
    files = [path for package in (*PACKAGES, "tests") for path in sources(package)]
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_bytes().splitlines()) for path in files
    }
    assert {name: length for name, length in lengths.items() if length > 400} == {}


def test_the_graph_picture_names_every_node():
    picture = (ROOT / "docs" / "pipeline.svg").read_text(encoding="utf-8")
    assert [name for name in NODES if f">{name}<" not in picture] == []


def imported_modules(path):
    """The modules of ours that a file imports when it is itself imported."""
    modules = set()

    def visit(nodes):
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("regard."):
                for alias in node.names:
                    name = f"{node.module}.{alias.name}"
                    modules.add(name if module_path(name) else node.module)
            elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                continue
            elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                visit(ast.iter_child_nodes(node))

    visit(ast.parse(path.read_text(encoding="utf-8")).body)
    return modules


def module_path(name):
    base = ROOT.joinpath(*name.split(".")[1:])
    candidates = (base.with_name(f"{base.name}.py"), base / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


def test_there_are_no_import_cycles():
    graph = {
        path: {module_path(name) for name in imported_modules(path)} - {None, path}
        for package in PACKAGES
        for path in sources(package)
    }
    while leaves := {path for path, needs in graph.items() if not needs & graph.keys()}:
        graph = {path: needs for path, needs in graph.items() if path not in leaves}
    assert sorted(path.relative_to(ROOT).as_posix() for path in graph) == []
