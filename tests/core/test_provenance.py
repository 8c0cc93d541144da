import shutil
import subprocess

import pytest

from regard.core import provenance

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def checkout(tmp_path):
    """A repository with one commit that holds one of the packages."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a.py").write_text("a = 1\n")
    run = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=n@example.org"]
    subprocess.run([*run, "init", "-q"], check=True)
    subprocess.run([*run, "add", "."], check=True)
    subprocess.run([*run, "commit", "-qm", "first"], check=True)
    return tmp_path


def test_stack_versions():
    stack = provenance.stack_versions()
    assert list(stack) == list(provenance.STACK)
    assert stack["numpy"] == __import__("numpy").__version__


def test_tensorflow_for_cpus_is_tensorflow(monkeypatch):
    def version(name):
        if name == "tensorflow-cpu":
            return "2.21.0"
        raise provenance.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(provenance.metadata, "version", version)
    assert provenance.stack_versions() == {"tensorflow": "2.21.0"}


def test_missing_package_has_no_version():
    assert provenance.package_version("no-such-package-anywhere") is None


@needs_git
def test_commit_and_changes(checkout):
    commit = provenance.code_version(checkout)["commit"]
    assert len(commit) == 40
    (checkout / "notes.txt").write_text("no code")
    assert provenance.code_version(checkout)["commit"] == commit
    (checkout / "models" / "b.py").write_text("b = 1\n")
    assert provenance.code_version(checkout)["commit"] == f"{commit}+dirty"


@needs_git
def test_code_inside_another_checkout_has_no_commit(checkout):
    inner = checkout / "venv" / "site-packages"
    (inner / "models").mkdir(parents=True)
    assert "commit" not in provenance.code_version(inner)


def test_no_commit_without_git(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "commit" not in provenance.code_version()


@needs_git
def test_environment_of_a_hook_is_ignored(checkout, tmp_path_factory, monkeypatch):
    commit = provenance.code_version(checkout)["commit"]
    monkeypatch.setenv("GIT_DIR", str(tmp_path_factory.mktemp("other")))
    assert provenance.code_version(checkout)["commit"] == commit
