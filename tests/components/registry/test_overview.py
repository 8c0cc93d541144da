"""The list of versions, also with invalid records and during changes."""

import shutil
import threading

import pytest

from regard.components.registry.overview import list_versions
from regard.components.registry.prune import prune
from regard.components.registry.rollback import rollback
from regard.components.registry.store import size_of
from regard.core.errors import UserError
from tests.components.registry.models import push_model, push_models


@pytest.fixture
def registry(tmp_path):
    return push_models(tmp_path / "registry", 3)


def states(registry, key):
    return {entry.version: getattr(entry, key) for entry in list_versions(registry)}


def test_live_and_withdrawn_versions(registry):
    rollback(registry, "m")
    assert states(registry, "live") == {4: True, 3: False, 2: False, 1: False}
    assert states(registry, "withdrawn") == {4: False, 3: True, 2: False, 1: False}
    (registry.path("m", 3) / "regard.json").unlink()
    assert states(registry, "withdrawn")[3]  # identified by its content


def test_an_invalid_record_is_listed_with_its_error(registry, tmp_path):
    shutil.copytree(registry.root / "m", registry.root / "n")
    (registry.path("m", 3) / "regard.json").write_text("")
    entries = list_versions(registry)
    assert [(entry.name, entry.version) for entry in entries] == [
        *(("m", number) for number in (3, 2, 1)),
        *(("n", number) for number in (3, 2, 1)),
    ]
    assert "not a valid record: Invalid JSON" in entries[0].error
    assert not entries[1].error


def test_an_invalid_record_blocks_changes_until_it_is_removed(registry):
    record = registry.path("m", 3) / "regard.json"
    record.write_text('{"withdrawn": null}')
    with pytest.raises(UserError, match="Move the file out"):
        rollback(registry, "m", 2)
    record.unlink()
    assert rollback(registry, "m", 2).version == 4
    (registry.path("m", 2) / "regard.json").write_text("")
    assert rollback(registry, "m", 1).version == 5  # no record refers to it


def test_missing_models_are_errors(registry):
    with pytest.raises(UserError, match="There is no model 'm/'"):
        list_versions(registry, "m/")


def test_links_have_no_size(registry, tmp_path):
    (tmp_path / "link").symlink_to(registry.path("m", 1))
    assert size_of(registry.path("m", 1)) > 10
    assert size_of(tmp_path / "link") == 0


def test_listing_during_changes_sees_complete_versions(registry):
    finished, listings = threading.Event(), []

    def change():
        for weights in range(100, 130):
            push_model(registry.root, weights)
            prune(registry, "m", 1)
        finished.set()

    changing = threading.Thread(target=change)
    changing.start()
    while not finished.is_set():
        listings.append(list_versions(registry))
    changing.join()
    assert len(listings) > 5
    for entries in listings:
        assert [entry.live for entry in entries] == [True] + [False] * (len(entries) - 1)
        assert all(entry.record.digest and entry.bytes for entry in entries)
