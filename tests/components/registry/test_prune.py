"""Pins, and the versions that pruning removes and keeps."""

import functools
import os
import shutil
import threading

import pytest

from regard.components.registry import publish
from regard.components.registry.prune import pin, prune, unpin
from regard.components.registry.publish import change_lock
from regard.components.registry.rollback import rollback
from regard.components.registry.store import is_pinned
from regard.core.errors import UserError
from regard.serving.server.versions import Version, list_versions
from tests.components.registry.models import push_model, push_models, weights_of


@pytest.fixture
def registry(tmp_path):
    return push_models(tmp_path / "registry", 5)


def reasons(results):
    return {result.version: result.kept_because for result in results}


def names(registry):
    return sorted(path.name for path in (registry.root / "m").iterdir())


def test_the_newest_versions_are_kept(registry):
    expected = {5: "live", 4: "among the newest 2", 3: None, 2: None, 1: None}
    dry = prune(registry, "m", 2, dry_run=True)
    assert reasons(dry) == expected
    assert names(registry) == ["1", "2", "3", "4", "5"]
    assert prune(registry, "m", 2) == dry
    assert names(registry) == ["4", "5"]
    assert dry[-1].bytes > 10
    assert reasons(prune(registry, "m", 2)) == {5: "live", 4: "among the newest 2"}


def test_pinned_and_needed_versions_are_kept(registry):
    assert pin(registry, "m", 1)
    assert not pin(registry, "m", 1)
    results = prune(registry, "m", 1, {2: "in models.config"})
    assert reasons(results) == {5: "live", 4: None, 3: None, 2: "in models.config", 1: "pinned"}
    assert names(registry) == ["1", "2", "5"]
    assert unpin(registry, "m", 1)
    assert not unpin(registry, "m", 1)
    assert not is_pinned(registry.path("m", 1))
    prune(registry, "m", 1)
    assert names(registry) == ["5"]


def test_loaded_versions_are_kept_until_the_server_unloads_them(registry):
    loaded = Version(3)
    loaded.lock(registry.path("m", 3))
    assert reasons(prune(registry, "m", 1, dry_run=True))[3] == "in use"
    assert reasons(prune(registry, "m", 1))[3] == "in use"
    assert names(registry) == ["3", "5"]
    loaded.unlock()
    prune(registry, "m", 1)
    assert names(registry) == ["5"]


def test_a_dry_run_needs_no_permission_to_write(registry, monkeypatch):
    loaded = Version(3)
    loaded.lock(registry.path("m", 3))
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    monkeypatch.setattr(os, "open", functools.partial(open_reading, os.open))
    assert reasons(prune(registry, "m", 1, dry_run=True)) == {
        5: "live",
        3: "in use",
        **dict.fromkeys((4, 2, 1)),
    }
    loaded.unlock()


def open_reading(real, path, flags, *arguments, **options):
    assert not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT), path
    return real(path, flags, *arguments, **options)


def test_folders_that_are_not_versions_are_kept(registry):
    (registry.root / "m" / "3" / "saved_model.pb").unlink()
    (registry.root / "m" / "notes").mkdir()
    assert 3 not in reasons(prune(registry, "m", 1))
    assert names(registry) == ["3", "5", "notes"]


def test_numbers_rise_after_pruning_and_rollback(registry):
    rollback(registry, "m")
    prune(registry, "m", 1, withdrawn=True)
    assert names(registry) == ["6"]
    assert weights_of(registry) == 4
    # Withdrawn models are known without the pruned version.
    with pytest.raises(publish.WithdrawnModelError):
        push_model(registry.root, 5)
    assert push_model(registry.root, 7) == (7, True)


@pytest.mark.parametrize("name", ["n", "m/", "../other/m", "m/.", "..", ".", ""])
def test_unknown_models_and_paths_are_errors(registry, name):
    push_models(registry.root.parent / "other", 2)
    with pytest.raises(UserError, match=f"There is no model '{name}'"):
        prune(registry, name, 1)
    assert len(list((registry.root.parent / "other" / "m").iterdir())) == 2


def test_withdrawn_versions_are_removed_only_on_request(registry):
    rollback(registry, "m")  # version 5 is withdrawn, 6 has the model of 4
    assert reasons(prune(registry, "m", 1))[5] == "withdrawn, see --withdrawn"
    assert names(registry) == ["5", "6"]
    prune(registry, "m", 1, withdrawn=True)
    assert names(registry) == ["6"]


def test_versions_that_regard_did_not_publish_are_kept(registry, tmp_path):
    (registry.root / "m" / "1").rename(tmp_path / "elsewhere")
    (registry.root / "m" / "1").symlink_to(tmp_path / "elsewhere")
    (registry.root / "m" / "2" / "regard.json").unlink()
    dry = prune(registry, "m", 1, dry_run=True)
    assert prune(registry, "m", 1) == dry
    assert [version for version, reason in reasons(dry).items() if reason] == [5, 2, 1]
    assert names(registry) == ["1", "2", "5"]
    assert (tmp_path / "elsewhere" / "saved_model.pb").is_file()


def test_the_rename_is_on_the_disk_before_files_are_removed(registry, monkeypatch):
    """Otherwise a power failure could restore a partly removed version."""
    calls = []

    def recording(name, real):
        def call(*arguments, **options):
            calls.append(name)
            return real(*arguments, **options)

        return call

    for name in ("rename", "fsync", "unlink", "rmdir"):
        monkeypatch.setattr(os, name, recording(name, getattr(os, name)))
    prune(registry, "m", 4)
    assert calls[:2] == ["rename", "fsync"]
    assert set(calls[2:]) == {"unlink", "rmdir"}


def test_concurrent_pruning_and_pushes(registry):
    """Every push gets a version, and at any moment there is a complete one to serve."""
    folder, versions, finished = registry.root / "m", [], threading.Event()

    def push_some(first):
        for weights in range(first, first + 10):
            versions.append(push_model(registry.root, weights)[0])

    def check():
        while not finished.is_set():
            newest = max(list_versions(folder).items())[1]
            # If it was pruned meanwhile, it is gone completely.
            empty.append(not (newest / "regard.json").is_file() and newest.exists())

    empty: list[bool] = []
    pushing = [threading.Thread(target=push_some, args=(first,)) for first in (100, 200)]
    checking = threading.Thread(target=check)
    checking.start()
    for thread in pushing:
        thread.start()
    while any(thread.is_alive() for thread in pushing):
        prune(registry, "m", 1)
    for thread in pushing:
        thread.join()
    finished.set()
    checking.join()
    assert sorted(versions) == list(range(6, 26))
    assert set(empty) == {False}
    prune(registry, "m", 1)
    assert names(registry) == ["25"]


@pytest.mark.parametrize("work", [pin, unpin])
def test_pinning_a_missing_version_is_an_error(registry, work):
    with pytest.raises(UserError, match="has no version '9'"):
        work(registry, "m", 9)
    assert not registry.path("m", 9).exists()


@pytest.mark.parametrize("work", [pin, rollback])
def test_a_version_pruned_during_the_wait_is_an_error(registry, work):
    errors = []

    def change():
        with pytest.raises(UserError) as caught:
            work(registry, "m", 1)
        errors.append(caught.value.message)

    thread = threading.Thread(target=change)
    with change_lock(registry.root / "m"):
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        shutil.rmtree(registry.path("m", 1))
    thread.join()
    assert errors == ["Model 'm' has no version '1'"]
    assert registry.versions("m") == [2, 3, 4, 5]
