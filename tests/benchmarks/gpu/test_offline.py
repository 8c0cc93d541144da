"""The small size, from a copy of what is brought along, where nothing else can be imported."""

import gzip
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import workload
from benchmarks.gpu import prepare, score
from benchmarks.gpu.run import weights_path
from benchmarks.gpu.sizes import SMALL
from tests.tolerances import close_to

ROOT = Path(__file__).resolve().parents[3]
# As in benchmarks/gpu/README.md.
BROUGHT_ALONG = (
    *("benchmarks/gpu", "benchmarks/hardware_limits.py", "benchmarks/markdown_table.py"),
    *("core", "models", "components", "regard", "tests/models/backends"),
    *("tests/models/test_backends.py", "tests/models/search/toy.py"),
    *("tests/marks.py", "tests/tolerances.py"),
)
WHEELS = {
    *("keras", "namex", "optree", "pydantic", "pydantic_core", "annotated_types"),
    *("typing_inspection", "typing_extensions"),
}
INSTALLED = {
    *("absl", "flatbuffers", "fsspec", "google", "h5py", "iniconfig", "jax", "jaxlib"),
    *("markdown_it", "mdurl", "ml_dtypes", "numpy", "opt_einsum", "packaging", "pluggy"),
    *(
        "py",
        "pyarrow",
        "pygments",
        "pytest",
        "rich",
        "scipy",
        "sentencepiece",
        "six",
        "tensorboard",
    ),
}
# Python imports a module of this name before everything else.
FILTER = """
import sys
from importlib import machinery

ALLOWED = set({allowed!r})

class Filter(machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        top = name.partition(".")[0]
        if top.startswith("_") or top in sys.stdlib_module_names or top in ALLOWED:
            return super().find_spec(name, path, target)
        return None

sys.meta_path[:] = [machinery.BuiltinImporter, machinery.FrozenImporter, Filter]
"""
WORDS = (
    *("a", "man", "in", "red", "sits", "on", "the", "green", "bench", "and", "reads"),
    *("one", "old", "book", "with", "two", "small", "dogs"),
)


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))


@pytest.fixture
def data(tmp_path):
    """Corpora with the names and the formats of Multi30k and Tatoeba."""
    draw = random.Random(0)

    def sentences(count):
        return [" ".join(draw.choices(WORDS, k=draw.randint(1, 4))) for _ in range(count)]

    for name in workload.SPLITS.values():
        for language in workload.SIDES.values():
            write_lines(tmp_path / f"data/multi30k/{name}.{language}.gz", sentences(200))
    pairs = zip(sentences(500), sentences(500), strict=True)
    lines = [f"{source} {i}\t{target}" for i, (source, target) in enumerate(pairs)]
    write_lines(tmp_path / "data/tatoeba-en-fr/pairs.en-fr.tsv.gz", lines)
    return tmp_path / "data"


@pytest.fixture
def checkout(tmp_path):
    """A copy of what is brought along."""
    folder = tmp_path / "checkout"
    for name in BROUGHT_ALONG:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    allowed = sorted(WHEELS | INSTALLED | {"benchmarks", "regard", "tests"})
    (folder / "sitecustomize.py").write_text(FILTER.format(allowed=allowed))
    return folder


@pytest.mark.slow
def test_the_benchmark_runs_where_nothing_else_is_installed(data, checkout, tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_DATA", str(data))
    folder, out = tmp_path / "prepared", tmp_path / "result.json"
    prepare.prepare(folder, data, SMALL)
    completed = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.gpu", "run", str(folder)),
            *("--small", "--out", str(out), "--minutes", "30"),
        ],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    result = json.loads(out.read_text())
    assert result["about"]["versions"]["keras"]
    processes = result["processes"]
    assert [process["status"] for process in processes] == ["finished"] * len(processes)
    assert {process["facts"]["tensorflow_imported"] for process in processes} == {False}
    rows = {part: [] for part in ("numerics", "training", "search", "multi30k")}
    for process in processes:
        rows[process["part"]] += process["rows"]
    assert [row["part"] for row in rows["numerics"]] == list(SMALL.backend_parts)
    assert all(row["equal"] for row in rows["numerics"])
    assert [row["precision"] for row in rows["training"]] == ["mixed_bfloat16", "float32"] * 2
    assert all(row["share_of_matrix_rate"] > 0 for row in rows["training"])
    first, second = rows["training"][:2]
    assert first["loss_before"] == close_to(second["loss_before"], "bfloat16")
    assert [row["equal_outputs"] for row in rows["search"]] == [1.0, 1.0]
    assert rows["multi30k"][0]["steps"] == 4
    assert score.score(folder, weights_path(out))["sentences"] == 200
