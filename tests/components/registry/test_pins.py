"""Versions that are pinned, and what is told of those that are not there."""

from __future__ import annotations

import shutil
import threading

import pytest

from components.errors import UserError
from components.registry import publishing
from components.registry.pins import is_pinned, pin, unpin
from tests.components.registry.models import push_models


@pytest.fixture
def registry(tmp_path):
    return push_models(tmp_path / "registry", 2)


def test_a_pin_is_set_and_taken_once(registry):
    assert (pin(registry, "m", 1), pin(registry, "m", 1)) == (True, False)
    assert is_pinned(registry.path("m", 1))
    assert not is_pinned(registry.path("m", 2))
    assert (unpin(registry, "m", 1), unpin(registry, "m", 1)) == (True, False)
    assert not is_pinned(registry.path("m", 1))


@pytest.mark.parametrize("work", [pin, unpin])
def test_what_is_not_there_is_not_pinned(registry, work):
    with pytest.raises(UserError, match="has no version '9'"):
        work(registry, "m", 9)
    assert not registry.path("m", 9).exists()


def test_a_pin_waits_for_a_pruning_that_goes_on(registry):
    """Who pins a version that is just being pruned hears that it is gone."""
    refused = []

    def pin_it():
        with pytest.raises(UserError) as caught:
            pin(registry, "m", 1)
        refused.append(caught.value.message)

    person = threading.Thread(target=pin_it)
    with publishing.locked(registry.root / "m"):
        person.start()
        person.join(0.2)
        assert person.is_alive()
        shutil.rmtree(registry.path("m", 1))
    person.join()
    assert refused == ["model 'm' has no version '1'"]
