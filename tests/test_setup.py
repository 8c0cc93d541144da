"""setup.py, the lock and the doctor must name the same things."""

import importlib.metadata
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from pipeline.checkups import KNOWN_GOOD, SHIM

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def names(lines):
    """The distributions that requirement lines name, without extras, versions and comments."""
    found = (re.match(r"[\w.-]+", line) for line in lines)
    return {normal(match[0]) for match in found if match}


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


def test_the_doctor_knows_the_releases_of_the_lock(pins):
    assert {name: pins.get(name) for name in KNOWN_GOOD} == KNOWN_GOOD


def test_every_package_of_the_lock_has_a_hash_and_no_address():
    text = (REQUIREMENTS / "lock.txt").read_text(encoding="utf-8")
    blocks = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert [block.split()[0] for block in blocks if "--hash=sha256:" not in block] == []
    assert not re.search(r"https?://|file:|index-url|find-links|\s/\w", text)


def test_the_lock_follows_its_sources(pins):
    wanted = (REQUIREMENTS / "requirements.in").read_text(encoding="utf-8").splitlines()
    left_out = (REQUIREMENTS / "excludes.txt").read_text(encoding="utf-8").splitlines()
    assert names(wanted) - pins.keys() == set()
    assert names(left_out) & pins.keys() == set()
    exact = dict(line.split("==") for line in wanted if "==" in line)
    assert {name: pins[normal(name)] for name in exact} == exact


def test_the_gpu_s_packages_are_tensorflow_s_own_and_have_hashes():
    wanted = [
        line.partition(";")[0].strip()
        for line in importlib.metadata.requires("tensorflow")
        if 'extra == "and-cuda"' in line
    ]
    lines = (REQUIREMENTS / "cuda.in").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == sorted(wanted)
    text = (REQUIREMENTS / "cuda.txt").read_text(encoding="utf-8")
    blocks = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert {re.split("==", block)[0] for block in blocks} == names(wanted)
    assert [block.split()[0] for block in blocks if "--hash=sha256:" not in block] == []


def test_setup_and_lock_name_the_same_packages(setup_py, pins):
    required = names(setup_py.REQUIRES)
    assert required - pins.keys() == set()
    assert names(setup_py.EXTRAS["dev"]) - pins.keys() == set()
    wanted = (REQUIREMENTS / "requirements.in").read_text(encoding="utf-8").splitlines()
    assert names(wanted) - required - names(setup_py.EXTRAS["dev"]) == set()


def test_the_lock_lies_within_the_ranges_of_setup(setup_py, pins):
    requirements = pytest.importorskip("packaging.requirements")
    for line in setup_py.REQUIRES + setup_py.EXTRAS["dev"]:
        wish = requirements.Requirement(line)
        assert wish.specifier.contains(pins[normal(wish.name)]), line


def test_setup_tells_what_it_is():
    command = [sys.executable, "setup.py", "--name", "--version", "--license"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split()[-3:] == ["regard", "0.1.0", "Apache-2.0"]


def test_every_folder_of_code_is_a_package():
    """Without `__init__.py` find_packages leaves a folder out of what pip installs."""
    folders = {
        path.parent
        for package in ("pipeline", "components", "models", "serving")
        for path in (ROOT / package).rglob("*.py")
    }
    assert [str(path) for path in folders if not (path / "__init__.py").exists()] == []


def test_the_shim_is_the_one_the_doctor_looks_for():
    text = (REQUIREMENTS / "tfx-bsl-sql-util" / "setup.py").read_text(encoding="utf-8")
    assert f'name="{SHIM}"' in text
