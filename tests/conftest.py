"""Fixtures for several folders."""

import gc

import pytest
from hypothesis import settings

from tests import browser

settings.register_profile("thorough")  # `make test-all`: tests may try more examples


def pytest_sessionstart(session):
    """Collect no garbage while test modules import TensorFlow: it takes half of that time."""
    gc.disable()


def pytest_collection_finish(session):
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """A browser for the tests of a module, which are skipped without one."""
    if browser.path() is None:
        pytest.skip("no Chromium on the PATH")
    chromium = browser.Browser(tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()
