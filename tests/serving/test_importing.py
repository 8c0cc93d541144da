from __future__ import annotations

import gc
import sys
from types import ModuleType

import pytest

from serving.importing import uncollected


@pytest.fixture
def thawed():
    """What a test froze is looked through again after it."""
    before = gc.get_freeze_count()
    yield before
    if not before:
        gc.unfreeze()


def test_nothing_is_collected_while_importing_and_again_afterwards(thawed):
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_made_is_not_looked_through_again(thawed, monkeypatch):
    with uncollected():
        monkeypatch.setitem(sys.modules, "imported_by_a_test", ModuleType("imported_by_a_test"))
        made = [[] for _ in range(1000)]
    assert gc.get_freeze_count() >= thawed + len(made)
    assert not any(one is made for one in gc.get_objects())


def test_what_stands_there_already_is_looked_through(thawed):
    with uncollected():
        made = [[]]
    assert gc.get_freeze_count() == thawed
    assert any(one is made for one in gc.get_objects())


def test_a_process_that_collects_nothing_goes_on_so(thawed):
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_failed_import_leaves_the_collector_as_it_was(thawed):
    with pytest.raises(ImportError), uncollected():
        raise ImportError
    assert gc.isenabled()
