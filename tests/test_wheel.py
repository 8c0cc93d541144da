"""The wheel: all files of the packages, and a command that runs outside of the checkout."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import regard

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("pipeline", "components", "models", "serving", "core", "configs")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The content of the wheel of a copy, because the build writes to the folder of its sources."""
    source = tmp_path_factory.mktemp("source")
    for name in ("setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in (*FOLDERS, "regard"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--wheel-dir", "dist", "."]
    subprocess.run(command, cwd=source, check=True)
    (path,) = (source / "dist").glob("regard-*.whl")
    content = tmp_path_factory.mktemp("content")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(content)
    return content


@pytest.fixture
def run(wheel, tmp_path):
    """Return a function that runs Python in an empty folder, with the wheel first on the path."""
    environment = {key: value for key, value in os.environ.items() if key != "REGARD_DATA"}
    environment |= {"PYTHONPATH": str(wheel), "REGARD_HOME": str(tmp_path / "home")}

    def run_python(*arguments):
        result = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run_python


def test_the_wheel_contains_every_file(wheel):
    expected = {
        path.relative_to(ROOT)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    files = {path.relative_to(wheel / "regard") for path in (wheel / "regard").rglob("*")}
    assert expected - files == set()
    assert len(expected) > 500
    assert {path.name for path in wheel.iterdir()} == {
        "regard",
        f"regard-{regard.__version__}.dist-info",
    }


def test_the_serving_check_imports_what_is_installed(wheel, tmp_path):
    """An editable installation, as that of the tests, finds the packages in another way."""
    script = wheel / "regard" / "serving" / "checks.py"
    code = f"""
import runpy, sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder).lower()]
sys.argv[:] = [{str(script)!r}, "missing.json", "result.json"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
    command = [sys.executable, "-I", "-c", code]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.stderr.splitlines()[-1].startswith("FileNotFoundError: "), result.stderr


def test_the_command_runs_outside_of_the_checkout(wheel, run, tmp_path):
    assert run("-c", "import regard; print(regard.__file__)").startswith(f"{wheel}/regard/")
    assert run("-m", "regard", "--version") == f"regard {regard.__version__}\n"
    assert "Wrote translation.yaml" in run("-m", "regard", "init", "translation")
    run("-m", "regard", "init", "quickstart", "--out", "small.yaml")
    run("-m", "regard", "data", "generate", "quickstart", "--rows", "300")
    assert "small.yaml is valid: pipeline small, " in run("-m", "regard", "validate", "small.yaml")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "home",
        "regard.translation.schema.json",
        "small.yaml",
        "translation.yaml",
    ]
