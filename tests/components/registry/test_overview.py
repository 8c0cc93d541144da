"""What is told of all versions, also of broken ones, and while others push and prune."""

from __future__ import annotations

import shutil
import threading

import pytest

from components.errors import UserError
from components.registry.overview import entries, entry, size_of
from components.registry.pruning import prune
from components.registry.rollback import rollback
from tests.components.registry.models import push_model, push_models


@pytest.fixture
def registry(tmp_path):
    return push_models(tmp_path / "registry", 3)


def told(registry, key):
    return {found["version"]: found[key] for found in entries(registry)}


def test_which_is_live_and_which_was_withdrawn(registry):
    rollback(registry, "m")
    assert told(registry, "live") == {4: True, 3: False, 2: False, 1: False}
    assert told(registry, "withdrawn") == {4: False, 3: True, 2: False, 1: False}
    (registry.path("m", 3) / "regard.json").unlink()
    assert told(registry, "withdrawn")[3]  # by its content


def test_a_record_that_cannot_be_read_is_told_and_stops_nothing(registry, tmp_path):
    shutil.copytree(registry.root / "m", registry.root / "n")
    (registry.path("m", 3) / "regard.json").write_text("")
    found = entries(registry)
    assert [(one["name"], one["version"]) for one in found] == [
        *(("m", number) for number in (3, 2, 1)),
        *(("n", number) for number in (3, 2, 1)),
    ]
    assert "not valid JSON" in found[0]["unreadable"]
    assert "unreadable" not in entry(registry, "m", 2)


def test_nothing_goes_wrong_until_the_record_is_moved_away_and_then_all_goes(registry):
    record = registry.path("m", 3) / "regard.json"
    record.write_text('{"withdrawn": null}')
    with pytest.raises(UserError, match="Move the file away"):
        rollback(registry, "m", 2)
    record.unlink()
    assert rollback(registry, "m", 2).version == 4
    (registry.path("m", 2) / "regard.json").write_text("")
    assert rollback(registry, "m", 1).version == 5  # it is needed no more


def test_one_that_is_not_there(registry):
    with pytest.raises(UserError, match="has no version '9'"):
        entry(registry, "m", 9)
    with pytest.raises(UserError, match="there is no model 'm/'"):
        entries(registry, "m/")


def test_the_bytes_of_a_link_are_not_its_own(registry, tmp_path):
    (tmp_path / "link").symlink_to(registry.path("m", 1))
    assert size_of(registry.path("m", 1)) > 10
    assert size_of(tmp_path / "link") == 0


def test_looks_beside_pushes_and_prunings_see_whole_versions(registry):
    done, seen = threading.Event(), []

    def change():
        for weights in range(100, 130):
            push_model(registry.root, weights)
            prune(registry, "m", 1)
        done.set()

    changing = threading.Thread(target=change)
    changing.start()
    while not done.is_set():
        seen.append(entries(registry))
    changing.join()
    assert len(seen) > 5
    for found in seen:
        assert [one["live"] for one in found] == [True] + [False] * (len(found) - 1)
        assert all(one["digest"] and one["bytes"] for one in found)
