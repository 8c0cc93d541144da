"""Fixtures for the tests that build pipelines."""

import functools

import pytest

from regard.components.common import code_digest

find_source_files = functools.cache(code_digest.source_files)


@pytest.fixture(scope="module", autouse=True)
def search_code_once():
    """Find the source files of a digest once.

    The tests do not change Regard's code, and build many pipelines: each search takes 40 ms, and
    a pipeline needs twenty.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code_digest, "source_files", find_source_files)
        yield
