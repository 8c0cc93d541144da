"""Imports without garbage collection."""

import gc
import sys
from types import ModuleType

import pytest

from regard.core.garbage_collection import without_gc


@pytest.fixture
def frozen_count():
    before = gc.get_freeze_count()
    yield before
    if not before:
        gc.unfreeze()


@pytest.mark.parametrize("imports_a_module", [True, False])
def test_objects_of_an_import_are_frozen(frozen_count, monkeypatch, imports_a_module):
    with without_gc():
        assert not gc.isenabled()
        if imports_a_module:
            monkeypatch.setitem(sys.modules, "imported_by_a_test", ModuleType("a"))
        objects = [[] for _ in range(1000)]
    assert gc.isenabled()
    assert (gc.get_freeze_count() >= frozen_count + len(objects)) == imports_a_module


def test_the_collector_is_restored(frozen_count):
    with pytest.raises(ImportError), without_gc():
        raise ImportError
    assert gc.isenabled()
    gc.disable()
    try:
        with without_gc():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
