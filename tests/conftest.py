"""What tests of several folders share."""

from __future__ import annotations

import pytest

from tests import browser


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """A browser for the tests of a file; they are skipped where there is none."""
    if browser.path() is None:
        pytest.skip("no Chromium on the PATH")
    made = browser.Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()
