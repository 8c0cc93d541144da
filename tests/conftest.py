"""Fixtures for several folders."""

import gc
import os
import sys

import pytest
from hypothesis import settings

from tests import browser, plugins, shared_folders

# `make test` tries the same examples each time, `make test-all` other and more ones.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("thorough", derandomize=False)
settings.load_profile("repeatable")


def pytest_sessionstart(session):
    """Collect no garbage while test modules import TensorFlow: it takes half of that time."""
    gc.disable()
    del sys.argv[1:]  # TFX's executors parse them, and fail with those of `pytest -v`


# Their files have few but long tests: the last process must not begin them when the others end.
_BEGIN_EARLY = (
    "tests/e2e/",
    "tests/test_notebook.py",
    "tests/components/trainer/",
    "tests/models/tasks/",
    "tests/serving/server/test_ctranslate2_servable.py",
    "tests/serving/server/test_jax_servable.py",
)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.nodeid.startswith(_BEGIN_EARLY))


def pytest_collection_finish(session):
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def set_shared_folders(tmp_path_factory):
    """Share what is built once with the other processes of this run of the tests."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_folders, "current", shared_folders.SharedFolders(root / "shared"))
        yield


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """A browser for the tests of a module, which are skipped without one."""
    if browser.path() is None:
        pytest.skip("no Chromium on the PATH")
    chromium = browser.Browser(tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()


@pytest.fixture
def install_plugin(tmp_path, monkeypatch):
    """Installs the package of `tests.plugins`, or one with other options, for one test."""

    def install(**options):
        folder = plugins.install(tmp_path / "site", **options)
        monkeypatch.syspath_prepend(folder)
        return folder

    yield install
    for module in [name for name in sys.modules if name.startswith("regard_bilinear")]:
        del sys.modules[module]
