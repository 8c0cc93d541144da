"""What is removed, what stays and why; pins."""

from __future__ import annotations

import errno
import os
import threading

import pytest

from components.errors import UserError
from components.registry import publishing
from components.registry.pins import is_pinned, pin, unpin
from components.registry.pruning import prune
from components.registry.rollback import rollback
from serving.local.versions import Version, versions_in
from tests.components.registry.models import push_model, push_models, weights_of


@pytest.fixture
def registry(tmp_path):
    return push_models(tmp_path / "registry", 5)


def kept(verdicts):
    return {verdict.version: verdict.kept for verdict in verdicts}


def names(registry):
    return sorted(path.name for path in (registry.root / "m").iterdir())


def test_the_newest_stay(registry):
    expected = {5: "live", 4: "among the newest 2", 3: None, 2: None, 1: None}
    dry = prune(registry, "m", 2, dry_run=True)
    assert kept(dry) == expected
    assert names(registry) == ["1", "2", "3", "4", "5"]
    assert prune(registry, "m", 2) == dry
    assert names(registry) == ["4", "5"]
    assert dry[-1].bytes > 10
    assert kept(prune(registry, "m", 2)) == {5: "live", 4: "among the newest 2"}


def test_pinned_and_held_versions_stay(registry):
    assert pin(registry, "m", 1)
    assert not pin(registry, "m", 1)
    found = prune(registry, "m", 1, {2: "in models.config"})
    assert kept(found) == {5: "live", 4: None, 3: None, 2: "in models.config", 1: "pinned"}
    assert names(registry) == ["1", "2", "5"]
    assert unpin(registry, "m", 1)
    assert not unpin(registry, "m", 1)
    assert not is_pinned(registry.path("m", 1))
    prune(registry, "m", 1)
    assert names(registry) == ["5"]


def test_what_a_server_has_loaded_stays_until_it_lets_go(registry):
    loaded = Version(3)
    loaded.hold(registry.path("m", 3))
    assert kept(prune(registry, "m", 1, dry_run=True))[3] == "in use"
    assert kept(prune(registry, "m", 1))[3] == "in use"
    assert names(registry) == ["3", "5"]
    loaded.release()
    prune(registry, "m", 1)
    assert names(registry) == ["5"]


def test_folders_that_are_no_versions_are_let_alone(registry):
    (registry.root / "m" / "3" / "saved_model.pb").unlink()
    (registry.root / "m" / "notes").mkdir()
    assert 3 not in kept(prune(registry, "m", 1))
    assert names(registry) == ["3", "5", "notes"]


def test_numbers_rise_also_after_pruning_and_going_back(registry):
    rollback(registry, "m")
    prune(registry, "m", 1)
    assert names(registry) == ["6"]
    assert weights_of(registry) == 4
    # What was withdrawn is known without the version.
    with pytest.raises(publishing.Withdrawn):
        push_model(registry.root, 5)
    assert push_model(registry.root, 7) == (7, True)


@pytest.mark.parametrize("name", ["n", "m/", "../other/m", "m/.", "..", ".", ""])
def test_an_unknown_model_is_told_and_a_path_is_none(registry, name):
    push_models(registry.root.parent / "other", 2)
    with pytest.raises(UserError, match=f"there is no model '{name}'"):
        prune(registry, name, 1)
    assert len(list((registry.root.parent / "other" / "m").iterdir())) == 2


def test_a_version_that_is_a_link_goes_and_what_it_leads_to_stays(registry, tmp_path):
    (registry.root / "m" / "1").rename(tmp_path / "elsewhere")
    (registry.root / "m" / "1").symlink_to(tmp_path / "elsewhere")
    gone = prune(registry, "m", 4)[-1]
    assert (gone.version, gone.bytes, gone.kept, gone.left) == (1, 0, None, None)
    assert names(registry) == ["2", "3", "4", "5"]
    assert (tmp_path / "elsewhere" / "saved_model.pb").is_file()


def test_what_cannot_be_removed_is_told(registry, monkeypatch):
    """As on a file system that keeps an open file's name."""
    remove = os.unlink

    def stubborn(path, *arguments, **options):
        if str(path).endswith("saved_model.pb"):
            raise OSError(errno.EBUSY, "busy")
        remove(path, *arguments, **options)

    monkeypatch.setattr(os, "unlink", stubborn)
    whole = prune(registry, "m", 4, dry_run=True)[-1].bytes
    gone = prune(registry, "m", 4)[-1]
    (left,) = (registry.root / "m").glob(".removed-1-*")
    assert gone.left == str(left)
    assert 0 < gone.bytes < whole
    monkeypatch.undo()
    prune(registry, "m", 4)
    assert names(registry) == ["2", "3", "4", "5"]


def test_a_version_has_gone_on_the_disk_before_its_files_go(registry, monkeypatch):
    """Or a loss of power might bring back the name of what is half removed."""
    calls = []

    def telling(name, real):
        def call(*arguments, **options):
            calls.append(name)
            return real(*arguments, **options)

        return call

    for name in ("rename", "fsync", "unlink", "rmdir"):
        monkeypatch.setattr(os, name, telling(name, getattr(os, name)))
    prune(registry, "m", 4)
    assert calls[:2] == ["rename", "fsync"]
    assert set(calls[2:]) == {"unlink", "rmdir"}


def test_pruning_and_pushes_side_by_side(registry):
    """Every push gets its version, and at every moment there is a whole one to serve."""
    folder, seen, done = registry.root / "m", [], threading.Event()

    def push_some(first):
        for weights in range(first, first + 10):
            seen.append(push_model(registry.root, weights)[0])

    def look():
        while not done.is_set():
            newest = max(versions_in(folder).items())[1]
            # It may be superseded and pruned between the two looks, and is gone as a whole then.
            empty.append(not (newest / "regard.json").is_file() and newest.exists())

    empty: list[bool] = []
    pushing = [threading.Thread(target=push_some, args=(first,)) for first in (100, 200)]
    looking = threading.Thread(target=look)
    looking.start()
    for thread in pushing:
        thread.start()
    while any(thread.is_alive() for thread in pushing):
        prune(registry, "m", 1)
    for thread in pushing:
        thread.join()
    done.set()
    looking.join()
    assert sorted(seen) == list(range(6, 26))
    assert set(empty) == {False}
    prune(registry, "m", 1)
    assert names(registry) == ["25"]
