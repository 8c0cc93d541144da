"""Pushes: version numbers, content digests, concurrent and failed pushes."""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from regard.components.registry import publish
from regard.components.registry.prune import prune
from regard.components.registry.publish import (
    copy_model,
    push,
    remove_leftovers,
    staging_folder,
)
from regard.components.registry.records import VersionRecord
from regard.components.registry.store import Registry
from regard.core import locks
from regard.core.errors import UserError
from regard.serving.content_digest import content_digest
from tests.components.registry.models import make_model, push_model, push_models, weights_of


@pytest.fixture
def model(tmp_path):
    return make_model(tmp_path / "model", b"weights")


def test_versions_count_up(model, tmp_path):
    root = tmp_path / "registry"
    assert push(model, root, "m", VersionRecord(run="r1", code="c0de")) == (1, True)
    assert push_model(root, 2) == (2, True)
    registry = Registry(root)
    assert registry.versions("m") == [1, 2]
    record = registry.record("m", 1)
    assert (record.name, record.version, record.run) == ("m", 1, "r1")
    assert record.code == "c0de"
    assert record.created.endswith("+00:00")
    assert json.loads((root / "m" / "1" / "regard.json").read_text()) == record.to_dict()
    assert len([path for path in (root / "m" / "1").rglob("*") if path.is_file()]) == 4
    assert sorted(path.name for path in (root / "m").iterdir()) == ["1", "2"]


def test_only_the_newest_version_is_compared_by_content(model, tmp_path):
    push(model, tmp_path / "r", "m", VersionRecord())
    # A new export of the same weights differs only in its fingerprint.
    (model / "fingerprint.pb").write_bytes(b"another")
    assert push(model, tmp_path / "r", "m", VersionRecord()) == (1, False)
    # A version without a record is identified by its content.
    (tmp_path / "r" / "m" / "1" / "regard.json").unlink()
    assert push(model, tmp_path / "r", "m", VersionRecord()) == (1, False)
    push_model(tmp_path / "r", 2)
    assert push(model, tmp_path / "r", "m", VersionRecord()) == (3, True)


def test_the_digest_covers_names_and_content(model, tmp_path):
    first = content_digest(model)
    assert first == content_digest(make_model(tmp_path / "same", b"weights"))
    assert first != content_digest(make_model(tmp_path / "other", b"weightz"))
    (model / "vocabulary").write_bytes(b"x")
    assert first != content_digest(model)


def test_versions_are_copies(model, tmp_path):
    push(model, tmp_path / "r", "m", VersionRecord())
    with open(model / "saved_model.pb", "r+b") as file:
        file.write(b"GRAPH")
    assert (tmp_path / "r" / "m" / "1" / "saved_model.pb").read_bytes() == b"graph"


def test_concurrent_pushes_get_different_versions(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        pushed = list(pool.map(lambda weights: push_model(tmp_path / "r", weights), range(8)))
    assert sorted(pushed) == [(version, True) for version in range(1, 9)]
    registry = Registry(tmp_path / "r")
    assert [weights_of(registry, version) for version, _ in pushed] == list(range(8))
    assert len(list((tmp_path / "r" / "m").iterdir())) == 8


def test_concurrent_pushes_of_one_model_make_one_version(model, tmp_path, monkeypatch):
    """All copy the model before the first one is published."""
    both, real = threading.Barrier(4), publish.publish

    def publish_together(*arguments):
        both.wait(30)
        return real(*arguments)

    monkeypatch.setattr("regard.components.registry.publish.publish", publish_together)
    with ThreadPoolExecutor(4) as pool:
        pushed = pool.map(lambda _: push(model, tmp_path / "r", "m", VersionRecord()), range(4))
    assert sorted(pushed) == [(1, False)] * 3 + [(1, True)]
    assert [path.name for path in (tmp_path / "r" / "m").iterdir()] == ["1"]


def test_the_folder_of_a_running_push_is_no_leftover(tmp_path):
    with staging_folder(tmp_path) as staging:
        remove_leftovers(tmp_path)
        assert staging.exists()
    assert not staging.exists()


def test_the_folder_of_a_dead_push_of_this_host_is_removed(tmp_path):
    for number, files in enumerate([(), ("regard.json",), ("regard.json", "saved_model.pb")]):
        path = tmp_path / f".pushing-{locks.host_id()}.{number}"
        path.mkdir()
        for name in files:
            (path / name).touch()
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_hidden_folders_of_others_are_kept(tmp_path):
    """Their names alone do not tell that Regard created them."""
    folders = [f".pushing-{locks.host_id()}.mine", ".pushing-mine", ".removed-mine", ".removed-1"]
    for name in folders:
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes").touch()
        os.utime(tmp_path / name / "notes", (1000, 1000))
    make_model(tmp_path / "model", b"weights")
    (tmp_path / "model" / "regard.json").touch()
    (tmp_path / ".removed-linked").symlink_to(tmp_path / "model")
    remove_leftovers(tmp_path)
    assert all((tmp_path / name / "notes").exists() for name in folders)
    assert (tmp_path / ".removed-linked" / "saved_model.pb").is_file()


@pytest.mark.parametrize("name", [".pushing-other-host.1", ".pushing-0123456789ab", ".pushing-.1"])
def test_the_folder_of_another_host_is_removed_a_day_after_its_last_change(tmp_path, name):
    path = make_model(tmp_path / name, b"weights")
    (path / "regard.json").touch()
    old = time.time() - publish.MAX_AGE_SECONDS - 60
    for file in (path, *path.rglob("*")):
        os.utime(file, (old, old))
    os.utime(path / "variables")  # one file is new
    remove_leftovers(tmp_path)
    assert content_digest(path)
    os.utime(path / "variables", (old, old))
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_push_whose_folder_was_removed_fails_and_publishes_nothing(model, tmp_path, monkeypatch):
    """Another host takes a push for dead, for example after its clock was set."""
    real = publish.publish

    def remove_first(folder, staging, make_record):
        hidden = publish.hide(staging)
        assert content_digest(hidden)
        return real(folder, staging, make_record)

    monkeypatch.setattr("regard.components.registry.publish.publish", remove_first)
    with pytest.raises(FileNotFoundError):
        push(model, tmp_path / "r", "m", VersionRecord())
    assert Registry(tmp_path / "r").versions("m") == []


def test_a_model_that_changes_during_the_copy_is_not_published(model, tmp_path, monkeypatch):
    real = publish.copy_model

    def change_and_copy(source, target):
        (source / "saved_model.pb").write_bytes(b"other")
        real(source, target)

    monkeypatch.setattr("regard.components.registry.publish.copy_model", change_and_copy)
    with pytest.raises(UserError, match="has changed while it was copied") as caught:
        push(model, tmp_path / "r", "m", VersionRecord())
    assert caught.value.where == str(model)
    assert list((tmp_path / "r" / "m").iterdir()) == []


def test_a_version_that_is_damaged_by_the_rename_is_taken_back(tmp_path, monkeypatch):
    registry, real = push_models(tmp_path / "registry", 1), os.rename

    def damage(source, target):
        real(source, target)
        if target.name == "2":
            (target / "variables" / "variables.data-00000-of-00001").unlink()

    monkeypatch.setattr(publish.os, "rename", damage)
    with pytest.raises(UserError, match="m@2 were damaged"):
        push_model(registry.root, 2)
    assert [path.name for path in (registry.root / "m").iterdir()] == ["1"]
    monkeypatch.undo()
    assert push_model(registry.root, 2) == (2, True)


def test_a_new_version_is_not_pruned_before_it_is_verified(tmp_path, monkeypatch):
    registry, results = push_models(tmp_path / "registry", 1), []
    real = publish.content_digest

    def digest(path):
        if path.name == "2" and not results:
            results.append(None)
            push_model(registry.root, 3)
            results.extend(prune(registry, "m", 1))
        return real(path)

    monkeypatch.setattr(publish, "content_digest", digest)
    assert push_model(registry.root, 2) == (2, True)
    assert {result.version: result.kept_because for result in results[1:]} == {
        3: "live",
        2: "in use",
        1: None,
    }


def test_a_failed_copy_leaves_nothing(model, tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(publish.shutil, "copyfile", full)
    with pytest.raises(OSError, match="No space left"):
        push(model, tmp_path / "r", "m", VersionRecord())
    assert list((tmp_path / "r" / "m").iterdir()) == []


@pytest.mark.parametrize(
    ("existing", "number"),
    [("0", 3), ("7", 8), ("0007", 8), ("notes", 3), (str(2**63), 3), ("9" * 200, 3)],
)
def test_the_next_number_is_above_every_number_that_a_server_recognizes(tmp_path, existing, number):
    registry = push_models(tmp_path / "registry", 2)
    (registry.root / "m" / existing).mkdir()
    assert push_model(registry.root, 5) == (number, True)
    assert registry.latest("m") == number


def test_there_is_no_version_after_the_highest(tmp_path):
    registry = push_models(tmp_path / "registry", 1)
    (registry.root / "m" / str(2**63 - 1)).mkdir()
    with pytest.raises(UserError, match="do not support higher versions"):
        push_model(registry.root, 2)
    assert registry.versions("m") == [1]


def test_linked_folders_are_digested_and_copied(tmp_path):
    model = make_model(tmp_path / "model", b"weights")
    digest = content_digest(model)
    (model / "variables").rename(tmp_path / "elsewhere")
    (model / "variables").symlink_to(tmp_path / "elsewhere")
    assert content_digest(model) == digest
    (tmp_path / "copy").mkdir()
    copy_model(model, tmp_path / "copy")
    assert content_digest(tmp_path / "copy") == digest
    assert not (tmp_path / "copy" / "variables").is_symlink()


def test_concurrent_changes_never_reuse_a_number(tmp_path):
    """Another process pushes twice and prunes while the next number is being chosen."""
    registry = push_models(tmp_path / "registry", 1)
    folder, others = registry.root / "m", []

    def slow_record(newest):
        """Let other processes push and prune before the number is used."""
        if not others:
            others.append(threading.Thread(target=push_and_prune))
            others[0].start()
            others[0].join(1.0)
        return VersionRecord()

    def push_and_prune():
        push_model(registry.root, 3)
        push_model(registry.root, 4)
        prune(registry, "m", 1)

    with staging_folder(folder) as work:
        copy_model(make_model(tmp_path / "model", b"2"), work)
        version = publish.publish(folder, work, slow_record).version
    others[0].join()
    assert version == 2
    assert registry.versions("m") == [4]
    assert push_model(registry.root, 5) == (5, True)


def test_a_number_that_a_host_with_other_locks_takes(model, tmp_path, monkeypatch):
    """On NFS without network locks, another host may take the number between list and rename."""
    push_model(tmp_path / "r", 1)
    rename, copies = os.rename, []

    def take_first(source, target):
        if target == tmp_path / "r" / "m" / "2" and not copies:
            copies.append(copy_model(model, make_folder(target)))
        rename(source, target)

    def make_folder(path):
        path.mkdir()
        return path

    monkeypatch.setattr(publish.os, "rename", take_first)
    assert push_model(tmp_path / "r", 3) == (3, True)
    assert weights_of(Registry(tmp_path / "r")) == 3
    assert Registry(tmp_path / "r").record("m", 3).version == 3
