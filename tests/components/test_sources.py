from __future__ import annotations

import ast
from pathlib import Path

import pytest

from components.evaluator.component import SOURCES as EVALUATOR
from components.predictor.component import SOURCES as PREDICTOR
from components.pusher.component import SOURCES as PUSHER
from pipeline.graph import _VALIDATED_BY

ROOT = Path(__file__).parents[2]
# What changes no number: how files are written, what is told, the names of artifacts.
SILENT = {"artifacts", "errors", "events", "files"}


def imported(path: Path) -> set[str]:
    """The modules of the components that a file imports, also late."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            # What is imported from a package may be a module of it.
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.startswith("components.")}


@pytest.mark.parametrize(
    "sources",
    [
        pytest.param(EVALUATOR, id="Evaluator"),
        pytest.param(PREDICTOR, id="Predictor"),
        pytest.param(PUSHER, id="Pusher"),
        pytest.param(_VALIDATED_BY, id="ExampleValidator"),
    ],
)
def test_the_cache_knows_every_file_that_the_result_depends_on(sources):
    files = {
        path
        for source in sources
        for path in ([ROOT / source] if source.endswith(".py") else (ROOT / source).rglob("*.py"))
    }
    for path in files:
        for name in imported(path):
            module = ROOT / f"{name.replace('.', '/')}.py"
            if module.exists() and module.stem not in SILENT:
                assert module in files, f"{path.name} imports {name}"
