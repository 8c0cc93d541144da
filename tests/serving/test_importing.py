from __future__ import annotations

import gc
import importlib.util
import sys
from types import ModuleType

import pytest

from serving.importing import lean, uncollected


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


def test_what_was_made_is_not_looked_through_again(thawed):
    with uncollected():
        made = [[] for _ in range(1000)]
    assert gc.get_freeze_count() >= thawed + len(made)
    assert not any(one is made for one in gc.get_objects())


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


@pytest.mark.parametrize("name", ["jax", "sklearn"])
def test_what_is_not_used_is_found_again_afterwards(thawed, monkeypatch, name):
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    with lean(), pytest.raises(ImportError):
        importlib.import_module(name)
    assert name not in sys.modules
    assert importlib.util.find_spec(name) is not None


def test_what_somebody_has_imported_stays(thawed, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", there := ModuleType("sklearn"))
    with lean():
        assert importlib.import_module("sklearn") is there
    assert sys.modules["sklearn"] is there


def test_jax_is_there_where_keras_computes_with_it(thawed, monkeypatch):
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    with lean():
        assert importlib.util.find_spec("jax") is not None
