"""Fixtures for the tests that build pipelines."""

import functools
import sys
from importlib.metadata import entry_points

import pytest

from regard.components.common import code_digest
from regard.core import plugins

find_source_files = functools.cache(code_digest.source_files)


@functools.cache
def find_entry_points(path, group):
    return entry_points(group=group)


@pytest.fixture(scope="module", autouse=True)
def search_code_once():
    """Find the source files of a digest and the installed plug-ins once.

    The tests do not change Regard's code, and build many pipelines: each search takes 40 ms, and
    a pipeline needs twenty. Plug-ins are searched again if ``sys.path`` changes.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code_digest, "source_files", find_source_files)
        patch.setattr(
            plugins, "entry_points", lambda group: find_entry_points(tuple(sys.path), group)
        )
        yield
