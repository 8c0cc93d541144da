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


LOCKS = ("lock", "cpu", "cuda", "extras", "dev", "jax-cuda", "docs", "uv")


def locked(*files):
    """The versions of the packages of lock files, by their names."""
    texts = [(REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8") for name in files]
    return dict(re.findall(r"^([\w.-]+)==([^ \\\n]+)", "".join(texts), re.MULTILINE))


def source_lines(name):
    """The requirements of a source of a lock file, without comments and inclusions."""
    lines = (REQUIREMENTS / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and line[0] not in "#-"]


@pytest.fixture(scope="module")
def pins():
    return locked("lock", "cpu")


@pytest.fixture(scope="module")
def setup_py():
    spec = spec_from_file_location("regard_setup", ROOT / "setup.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_has_a_hash_and_no_address(name):
    text = (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
    blocks = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert blocks
    assert [block.split()[0] for block in blocks if "--hash=sha256:" not in block] == []
    assert not re.search(r"https?://|file:|index-url|find-links|\s/\w", text)


def test_locks_match_their_sources(pins):
    for name in LOCKS:
        lines = source_lines("requirements.in" if name == "lock" else f"{name}.in")
        versions = pins if name == "lock" else locked("lock", name)
        assert names(lines) - versions.keys() == set()
        exact = dict(line.split("==") for line in lines if "==" in line)
        assert {name: versions[normalize(name)] for name in exact} == exact
    assert names(source_lines("excludes.txt")) & locked(*LOCKS).keys() == set()
    assert names(source_lines("excludes-run.txt")) & pins.keys() == set()
    assert set(locked("extras").items()) <= set(locked("lock", "dev").items())


@pytest.mark.parametrize("name", ["extras", "dev", "docs", "jax-cuda"])
def test_additions_do_not_change_packages(name):
    assert locked("lock").keys() & locked(name).keys() == set()
    versions = locked("extras") | locked(name)
    assert locked("extras").items() <= versions.items()


def test_both_tensorflows_have_one_version():
    cuda = locked("cuda")
    assert locked("cpu") == {"tensorflow-cpu": cuda["tensorflow"]}
    assert "tensorflow" not in locked("lock", "extras", "dev", "docs")


def test_gpu_packages_are_those_of_tensorflow():
    # The metadata of tensorflow-cpu has the same extra.
    installed = importlib.metadata.packages_distributions()["tensorflow"]
    (tensorflow,) = {"tensorflow", "tensorflow-cpu", "tensorflow_cpu"} & set(installed)
    required_lines = [
        line.partition(";")[0].strip()
        for line in importlib.metadata.requires(tensorflow)
        if 'extra == "and-cuda"' in line
    ]
    first, *lines = source_lines("cuda.in")
    assert first.startswith("tensorflow==")
    assert lines == sorted(required_lines)
    assert locked("cuda").keys() == names([first, *required_lines])


def test_gpu_packages_of_jax_are_locked():
    required = [
        re.match(r"[\w.-]+", line)[0]
        for line in importlib.metadata.requires("jax")
        if 'extra == "cuda13"' in line
    ]
    assert {"jax", *map(normalize, required)} <= locked("jax-cuda").keys()


def test_setup_and_locks_have_the_same_packages(setup_py, pins):
    required = names(setup_py.REQUIRES + setup_py.PIPELINE) - {"tensorflow"} | {"tensorflow-cpu"}
    assert required - pins.keys() == set()
    assert names(source_lines("requirements.in")) - required == {"setuptools", "wheel"}
    # Of extras.in, the last two are tfx's, which names them itself.
    tfx = {"google-cloud-aiplatform", "kubernetes"}
    assert names(source_lines("extras.in")) - tfx == names(setup_py.EXTRAS["extras"])
    development = names(setup_py.EXTRAS["dev"]) - names(setup_py.EXTRAS["extras"])
    assert names(source_lines("dev.in")) == development - {"setuptools", "wheel"}
    assert source_lines("docs.in") == setup_py.EXTRAS["docs"]


def test_locked_versions_satisfy_setup(setup_py):
    requirements = pytest.importorskip("packaging.requirements")
    versions = locked("lock", "cuda", "dev")
    for line in setup_py.REQUIRES + setup_py.PIPELINE + setup_py.EXTRAS["dev"]:
        requirement = requirements.Requirement(line)
        assert requirement.specifier.contains(versions[normalize(requirement.name)]), line


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
