"""setup.py, the lock and the doctor must name the same things."""

import importlib.metadata
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from regard.pipeline.doctor.checks import SHIM

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"


def normalize(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def names(lines):
    """The distributions of requirement lines, without extras, versions and comments."""
    matches = (re.match(r"[\w.-]+", line) for line in lines)
    return {normalize(match[0]) for match in matches if match}


@pytest.fixture(scope="module")
def pins():
    text = (REQUIREMENTS / "lock.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==([^ \\\n]+)", text, re.MULTILINE))


@pytest.fixture(scope="module")
def setup_py():
    spec = spec_from_file_location("regard_setup", ROOT / "setup.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_locked_package_has_a_hash_and_no_address():
    text = (REQUIREMENTS / "lock.txt").read_text(encoding="utf-8")
    blocks = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert [block.split()[0] for block in blocks if "--hash=sha256:" not in block] == []
    assert not re.search(r"https?://|file:|index-url|find-links|\s/\w", text)


def test_lock_matches_its_sources(pins):
    required_lines = (REQUIREMENTS / "requirements.in").read_text(encoding="utf-8").splitlines()
    excluded = (REQUIREMENTS / "excludes.txt").read_text(encoding="utf-8").splitlines()
    assert names(required_lines) - pins.keys() == set()
    assert names(excluded) & pins.keys() == set()
    exact = dict(line.split("==") for line in required_lines if "==" in line)
    assert {name: pins[normalize(name)] for name in exact} == exact


def test_gpu_packages_are_those_of_tensorflow_and_have_hashes():
    required_lines = [
        line.partition(";")[0].strip()
        for line in importlib.metadata.requires("tensorflow")
        if 'extra == "and-cuda"' in line
    ]
    lines = (REQUIREMENTS / "cuda.in").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == sorted(required_lines)
    text = (REQUIREMENTS / "cuda.txt").read_text(encoding="utf-8")
    blocks = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert {re.split("==", block)[0] for block in blocks} == names(required_lines)
    assert [block.split()[0] for block in blocks if "--hash=sha256:" not in block] == []


def test_packages_of_jax_for_gpus_fit_into_the_environment(setup_py, pins):
    text = (REQUIREMENTS / "jax-cuda.txt").read_text(encoding="utf-8")
    blocks = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    versions = dict(block.split()[0].split("==") for block in blocks)
    required = [
        line.partition(";")[0].split("<")[0].split(">")[0].split("=")[0].split("[")[0].strip()
        for line in importlib.metadata.requires("jax")
        if 'extra == "cuda13"' in line
    ]
    assert {"jax", *required} <= versions.keys()
    assert {name: pins.get(name, version) for name, version in versions.items()} == versions
    assert [block.split()[0] for block in blocks if "--hash=sha256:" not in block] == []


def test_documentation_packages_fit_into_the_environment(setup_py, pins):
    lines = (REQUIREMENTS / "docs.in").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == setup_py.EXTRAS["docs"]
    text = (REQUIREMENTS / "docs.txt").read_text(encoding="utf-8")
    blocks = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    versions = dict(block.split()[0].split("==") for block in blocks)
    assert names(setup_py.EXTRAS["docs"]) <= versions.keys()
    assert {name: pins.get(name, version) for name, version in versions.items()} == versions
    assert [block.split()[0] for block in blocks if "--hash=sha256:" not in block] == []


def test_setup_and_lock_have_the_same_packages(setup_py, pins):
    required = names(setup_py.REQUIRES + setup_py.PIPELINE)
    assert required - pins.keys() == set()
    assert names(setup_py.EXTRAS["dev"]) - pins.keys() == set()
    required_lines = (REQUIREMENTS / "requirements.in").read_text(encoding="utf-8").splitlines()
    assert names(required_lines) - required - names(setup_py.EXTRAS["dev"]) == set()


def test_locked_versions_satisfy_setup(setup_py, pins):
    requirements = pytest.importorskip("packaging.requirements")
    for line in setup_py.REQUIRES + setup_py.PIPELINE + setup_py.EXTRAS["dev"]:
        requirement = requirements.Requirement(line)
        assert requirement.specifier.contains(pins[normalize(requirement.name)]), line


def test_setup_metadata():
    command = [sys.executable, "setup.py", "--name", "--version", "--license"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split()[-3:] == ["regard", "0.1.0", "Apache-2.0"]


def test_distribution_contains_every_package():
    from setuptools import find_namespace_packages

    packages = set(find_namespace_packages(str(ROOT), include=["regard*"]))
    folders = {
        "regard." + ".".join(path.parent.relative_to(ROOT).parts)
        for package in ("pipeline", "components", "models", "serving", "core")
        for path in (ROOT / package).rglob("*.py")
    }
    assert folders - packages == set()


def test_shim_is_the_one_that_the_doctor_checks():
    text = (REQUIREMENTS / "tfx-bsl-sql-util" / "setup.py").read_text(encoding="utf-8")
    assert f'name="{SHIM}"' in text
