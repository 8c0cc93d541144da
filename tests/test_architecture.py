"""Rules of the architecture that a test can check."""

import ast
import re
from pathlib import Path

import pytest

from regard.components.common.code_digest import PACKAGE, source_files
from regard.models import tasks
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
    folders = (*PACKAGES, "tests", "benchmarks", "examples")
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


@pytest.mark.parametrize("task", tasks.TASKS.own)
def test_preprocessing_reaches_no_model(task):
    """An edit of a decoder or a search must not transform every corpus again."""
    modules = ["regard.components.preprocess", *tasks.preprocessing_modules(task)]
    files = [path.relative_to(PACKAGE) for path in source_files(*modules)]
    assert len(files) <= 44
    models = {"attention", "decoders", "encoders", "layers", "search", "seq2seq.py"}
    served = {"protected_sources.py", "protecting_tokenizer.py", "inline_spans.py"}
    assert [str(path) for path in files if (models | served) & set(path.parts)] == []


@pytest.mark.parametrize("task", tasks.TASKS.own)
def test_training_reaches_no_registry_and_no_server(task):
    """An edit of them must not train every model again."""
    modules = ["regard.components.trainer.train_and_export", *tasks.training_modules(task)]
    files = [path.relative_to(PACKAGE) for path in source_files(*modules)]
    others = {"registry", "server", "deploy", "cli", "web", "reporter", "evaluator"}
    modules = [path for path in files if path.suffix == ".py"]
    assert [str(path) for path in modules if others & set(path.parts)] == []


@pytest.mark.parametrize("task", tasks.TASKS.own)
def test_batches_and_networks_know_no_tensorflow(task):
    modules = [f"{tasks.describe(task).parts.package}.network", "regard.components.trainer.batches"]
    backends = {"tensorflow", "tensorflow_text", "tensorflow_transform", "jax", "torch"}
    paths = source_files(*modules)
    wrong = {path.name: sorted(imported(path) & backends) for path in paths if path.suffix == ".py"}
    assert {name: packages for name, packages in wrong.items() if packages} == {}


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
    """Yield the modules of ours that a file imports, and whether a function imports them."""

    def visit(node, in_function):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ImportFrom) and (child.module or "").startswith("regard."):
                for alias in child.names:
                    name = f"{child.module}.{alias.name}"
                    yield name if module_path(name) else child.module, in_function
            is_function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
            yield from visit(child, in_function or is_function)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), False)


def module_path(name):
    base = ROOT.joinpath(*name.split(".")[1:])
    candidates = (base.with_name(f"{base.name}.py"), base / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


def test_there_are_no_import_cycles():
    """Imports in functions and under ``TYPE_CHECKING`` count."""
    graph = {
        path: {module_path(name) for name, _ in imported_modules(path)} - {None, path}
        for package in PACKAGES
        for path in sources(package)
    }
    while leaves := {path for path, needs in graph.items() if not needs & graph.keys()}:
        graph = {path: needs for path, needs in graph.items() if path not in leaves}
    assert sorted(path.relative_to(ROOT).as_posix() for path in graph) == []


def test_few_imports_stand_in_functions():
    """Those of modules that import TensorFlow, TFX, Beam or matplotlib."""
    lazy = {
        f"{path.relative_to(ROOT)}: {name}"
        for package in PACKAGES
        for path in sources(package)
        for name, in_function in imported_modules(path)
        if in_function
    }
    assert len(lazy) <= 40, lazy


def test_a_class_has_one_name():
    owners = {}
    for package in PACKAGES:
        for path in sources(package):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    owners.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: paths for name, paths in owners.items() if len(paths) > 1} == {}


def test_every_test_that_a_comment_names_exists():
    """Fast ways name the test that compares them with the plain ones."""
    count = 0
    for path in (path for package in PACKAGES for path in sources(package)):
        text = path.read_text("utf-8")
        files = [ROOT / file for file in re.findall(r"`(tests/[\w/]+\.py)`", text)]
        assert all(file.exists() for file in files), path
        tests = "".join(file.read_text("utf-8") for file in files)
        functions = re.findall(r"def (test_\w+)", tests)
        if files:
            assert set(re.findall(r"`(test_\w+)`", text)) <= set(functions), path
        count += len(files)
    assert count > 3
